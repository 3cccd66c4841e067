import { getOrMake } from "@floodgate/core/adapter";
import { firstStep, ranges } from "../collect/ring.js";
import type { Burst, History, Range, Result, RuleHistory } from "../contract.js";

/** The sum of the histories of several processes, up to the newest step that has ended at `nowMs`. */
export function mergeHistories(range: Range, nowMs: number, histories: readonly History[]): History {
  const { stepMs, points } = ranges[range];
  const startMs = firstStep(range, nowMs) * stepMs;
  const sums = new Map<string, Map<Result, number[]>>();
  for (const history of histories) {
    const shift = (history.startMs - startMs) / stepMs;
    for (const { rule, series } of history.rules) {
      const bySeries = getOrMake(sums, rule, () => new Map());
      for (const [result, counts] of Object.entries(series) as [Result, readonly number[]][]) {
        const sum = getOrMake(bySeries, result, () => new Array<number>(points).fill(0));
        counts.forEach((count, i) => {
          const at = i + shift;
          if (at >= 0 && at < points) sum[at] = (sum[at] as number) + count;
        });
      }
    }
  }
  const rules = [...sums].map(([rule, series]): RuleHistory => ({ rule, series: Object.fromEntries(series) }));
  return { range, startMs, stepMs, points, rules: rules.filter(hasCounts), bursts: mergeBursts(startMs, histories) };
}

function hasCounts({ series }: RuleHistory): boolean {
  return Object.values(series).some((counts) => counts.some((count) => count > 0));
}

/** Of each minute the busiest second of one process. What the others had in that second is not known. */
function mergeBursts(startMs: number, histories: readonly History[]): Burst[] {
  const minutes = new Map<number, Burst>();
  for (const burst of histories.flatMap(({ bursts }) => bursts)) {
    if (burst.minuteMs + 60_000 <= startMs) continue;
    const known = minutes.get(burst.minuteMs);
    const busiest = known !== undefined && known.count >= burst.count ? known : burst;
    const [atMost, inMinute] = [burst.atMost + (known?.atMost ?? 0), burst.inMinute + (known?.inMinute ?? 0)];
    minutes.set(burst.minuteMs, { ...busiest, atMost, inMinute });
  }
  return [...minutes.values()].sort((a, b) => a.minuteMs - b.minuteMs);
}
