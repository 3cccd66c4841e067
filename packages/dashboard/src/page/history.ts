import { type Counts, type History, type RuleHistory, type Tick, wholeRequests } from "../contract.js";
import { add, type Result, results } from "./results.js";

/** What a chart shows: one rule by its name, or whole requests. */
export type Chosen = string | undefined;

const chosenOf = (history: History, rule: Chosen): readonly RuleHistory[] =>
  history.rules.filter((each) => each.rule === (rule ?? wholeRequests));

export function seriesOf(history: History, result: Result, rule?: Chosen): number[] {
  const sum = new Array<number>(history.points).fill(0);
  for (const { series } of chosenOf(history, rule)) {
    series[result]?.forEach((count, i) => {
      sum[i] = (sum[i] ?? 0) + count;
    });
  }
  return sum;
}

/** Requests of the whole range by result. */
export function countsOf(history: History, rule?: Chosen): Counts {
  const counts: { -readonly [R in Result]?: number } = {};
  for (const { series } of chosenOf(history, rule)) {
    for (const { id } of results) {
      const sum = series[id]?.reduce((a, b) => a + b, 0) ?? 0;
      if (sum > 0) counts[id] = (counts[id] ?? 0) + sum;
    }
  }
  return counts;
}

/** Requests of one step by result. */
export function countsAt(history: History, index: number, rule?: Chosen): Counts {
  let counts: Counts = {};
  for (const { series } of chosenOf(history, rule)) {
    counts = add(
      counts,
      Object.fromEntries(results.flatMap(({ id }) => ((series[id]?.[index] ?? 0) > 0 ? [[id, series[id]?.[index]]] : []))),
    );
  }
  return counts;
}

/** Whether a tick belongs right after this history, before its end, or after a gap. */
export function placeOf(history: History, tick: Tick): "next" | "known" | "gap" {
  const end = history.startMs + history.points * history.stepMs;
  return tick.secondMs === end ? "next" : tick.secondMs < end ? "known" : "gap";
}

/** The history of a minute one second later. */
export function withTick(history: History, tick: Tick): History {
  const ticked = new Map(tick.counts.map(({ rule, counts }) => [rule, counts]));
  const before = new Map(history.rules.map((each) => [each.rule, each.series]));
  const rules = [...new Set([...before.keys(), ...ticked.keys()])].flatMap((rule) => {
    const series = Object.fromEntries(
      results.flatMap(({ id }) => {
        const moved = [...(before.get(rule)?.[id] ?? new Array<number>(history.points).fill(0)).slice(1), ticked.get(rule)?.[id] ?? 0];
        return moved.some((count) => count > 0) ? [[id, moved]] : [];
      }),
    );
    return Object.keys(series).length === 0 ? [] : [{ rule, series }];
  });
  return { ...history, startMs: history.startMs + history.stepMs, rules };
}

/** How many seconds of a history were counted. A process that is younger than the range has not had the whole range. */
export function secondsOf({ startMs, stepMs, points }: History, sinceMs: number): number {
  const seconds = (points * stepMs) / 1000;
  return Math.min(seconds, Math.max(1, startMs / 1000 + seconds - sinceMs / 1000));
}
