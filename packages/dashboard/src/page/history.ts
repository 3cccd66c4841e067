import { type Counts, type History, type Result, type RuleHistory, wholeRequests } from "../contract.js";

/** What a chart shows: one rule by its name, or whole requests. */
type Chosen = string | undefined;

const seriesIn = (history: History, rule: Chosen): RuleHistory["series"] =>
  history.rules.find((each) => each.rule === (rule ?? wholeRequests))?.series ?? {};

export const seriesOf = (history: History, result: Result, rule?: Chosen): readonly number[] =>
  seriesIn(history, rule)[result] ?? new Array<number>(history.points).fill(0);

/** Requests of the whole range by result. */
export const countsOf = (history: History, rule?: Chosen): Counts =>
  countsIn(history, rule, (series) => series.reduce((sum, count) => sum + count, 0));

/** Requests of one step by result. */
export const countsAt = (history: History, index: number, rule?: Chosen): Counts => countsIn(history, rule, (series) => series[index] ?? 0);

function countsIn(history: History, rule: Chosen, countOf: (series: readonly number[]) => number): Counts {
  const counts = Object.entries(seriesIn(history, rule)).map(([result, series]) => [result, countOf(series)] as const);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

/** How many seconds of a history were counted. A process that is younger than the range has not had the whole range. */
export function secondsOf({ startMs, stepMs, points }: History, sinceMs: number): number {
  const seconds = (points * stepMs) / 1000;
  return Math.min(seconds, Math.max(1, startMs / 1000 + seconds - sinceMs / 1000));
}
