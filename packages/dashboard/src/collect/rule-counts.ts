import { type Counts, type Range, type Result, type RuleHistory, type RuleTotals, results } from "../contract.js";
import { maxExtra, Ring, rangeNames, ranges } from "./ring.js";

type Rings = Readonly<Record<Range, Ring>>;

/** How often one result occurred. */
interface ResultCounts {
  inSecond: number;
  total: number;
  /** Counts to take back whose second has ended: the next ones are not counted in their place. */
  owed: number;
  /** Made when the result first occurs. */
  rings: Rings | undefined;
}

/** The counts of one rule: the second that runs, the last minute, hour and day, and the totals. */
export class RuleCounts {
  readonly rule: string;
  readonly #results = new Map(
    results.map((result): [Result, ResultCounts] => [result, { inSecond: 0, total: 0, owed: 0, rings: undefined }]),
  );
  #touched = false;
  asked = 0;
  charged = 0;
  bans = 0;

  constructor(rule: string) {
    this.rule = rule;
  }

  add(result: Result): void {
    const counts = this.#results.get(result) as ResultCounts;
    this.#touched = true;
    if (counts.owed > 0) counts.owed--;
    else counts.inSecond++;
  }

  takeBack(result: Result): void {
    const counts = this.#results.get(result) as ResultCounts;
    if (counts.inSecond > 0) counts.inSecond--;
    // What was counted before this began is not to be taken back.
    else if (counts.total > counts.owed) counts.owed++;
  }

  /** Whether anything was counted. */
  get isUsed(): boolean {
    return this.#touched || [...this.#results.values()].some(({ rings }) => rings !== undefined);
  }

  /** How often these results occurred in the second that runs. */
  inSecond(which: readonly Result[]): number {
    return this.#touched ? which.reduce((sum, result) => sum + (this.#results.get(result)?.inSecond ?? 0), 0) : 0;
  }

  /** Moves the counts of a second that has ended to the rings. */
  endSecond(second: number): void {
    if (!this.#touched) return;
    const ended = this.#counts(({ inSecond }) => inSecond);
    for (const [result, count] of Object.entries(ended) as [Result, number][]) {
      const counts = this.#results.get(result) as ResultCounts;
      counts.inSecond = 0;
      counts.total += count;
      counts.rings ??= { minute: ringOf("minute"), hour: ringOf("hour"), day: ringOf("day") };
      for (const range of rangeNames) counts.rings[range].add(Math.floor((second * 1000) / ranges[range].stepMs), count);
    }
    this.#touched = false;
  }

  /** Some steps of a range that have ended, or undefined if they are all 0. */
  history(range: Range, first: number, points: number): RuleHistory | undefined {
    const series: { [R in Result]?: readonly number[] } = {};
    for (const [result, { rings }] of this.#results) {
      const counts = rings?.[range].read(first, points);
      if (counts !== undefined) series[result] = counts;
    }
    return Object.keys(series).length === 0 ? undefined : { rule: this.rule, series };
  }

  /** Without the second that runs. */
  totals(): RuleTotals {
    const counts = this.#counts(({ total }) => total);
    return { rule: this.rule, counts, units: { asked: this.asked, charged: this.charged }, bans: this.bans };
  }

  #counts(countOf: (counts: ResultCounts) => number): Counts {
    const all = [...this.#results].map(([result, counts]) => [result, countOf(counts)] as const);
    return Object.fromEntries(all.filter(([, count]) => count > 0));
  }
}

function ringOf(range: Range): Ring {
  return new Ring(ranges[range].points + maxExtra);
}

export function addCounts(a: Counts, b: Counts): Counts {
  const sum: Record<string, number> = {};
  for (const result of results) {
    const count = (a[result] ?? 0) + (b[result] ?? 0);
    if (count > 0) sum[result] = count;
  }
  return sum;
}
