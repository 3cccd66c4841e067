import { type Counts, type Range, type Result, type RuleHistory, type RuleTotals, rejections, results } from "../contract.js";
import { mostExtra, Ring, rangeNames, ranges } from "./ring.js";

type Rings = Readonly<Record<Range, Ring>>;

/** The counts of one rule: the second that runs, the last minute, hour and day, and the totals. A result's rings are made when it occurs. */
export class RuleCounts {
  readonly rule: string;
  readonly #second: number[] = results.map(() => 0);
  readonly #totals: number[] = results.map(() => 0);
  readonly #rings: (Rings | undefined)[] = results.map(() => undefined);
  #touched = false;
  /** Counts to take back whose second has ended: the next ones are not counted in their place. */
  readonly #owed: number[] = results.map(() => 0);
  asked = 0;
  charged = 0;
  bans = 0;

  constructor(rule: string) {
    this.rule = rule;
  }

  add(result: Result): void {
    const index = results.indexOf(result);
    this.#touched = true;
    if ((this.#owed[index] as number) > 0) this.#owed[index] = (this.#owed[index] as number) - 1;
    else this.#second[index] = (this.#second[index] as number) + 1;
  }

  takeBack(result: Result): void {
    const index = results.indexOf(result);
    if ((this.#second[index] as number) > 0) this.#second[index] = (this.#second[index] as number) - 1;
    else this.#owed[index] = (this.#owed[index] as number) + 1;
  }

  /** Whether anything was counted. */
  get isUsed(): boolean {
    return this.#touched || this.#rings.some((rings) => rings !== undefined);
  }

  get inSecond(): number {
    return this.#touched ? this.#second.reduce((sum, count) => sum + count, 0) : 0;
  }

  get limitedInSecond(): number {
    return this.#touched ? rejectedIndexes.reduce((sum, index) => sum + (this.#second[index] as number), 0) : 0;
  }

  /** Moves the counts of a second that has ended to the rings. Returns them, or undefined if nothing was counted. */
  endSecond(second: number): Counts | undefined {
    if (!this.#touched) return undefined;
    const counts: { [R in Result]?: number } = {};
    for (let i = 0; i < results.length; i++) {
      const count = this.#second[i] as number;
      if (count === 0) continue;
      counts[results[i] as Result] = count;
      this.#second[i] = 0;
      this.#totals[i] = (this.#totals[i] as number) + count;
      this.#rings[i] ??= { minute: ringOf("minute"), hour: ringOf("hour"), day: ringOf("day") };
      const rings = this.#rings[i] as Rings;
      for (const range of rangeNames) rings[range].add(Math.floor((second * 1000) / ranges[range].stepMs), count);
    }
    this.#touched = false;
    if (Object.keys(counts).length === 0) return undefined;
    return counts;
  }

  /** Some steps of a range that have ended, or undefined if they are all 0. */
  history(range: Range, first: number, points: number): RuleHistory | undefined {
    const series: { [R in Result]?: readonly number[] } = {};
    results.forEach((result, i) => {
      const counts = this.#rings[i]?.[range].read(first, points);
      if (counts !== undefined) series[result] = counts;
    });
    return Object.keys(series).length === 0 ? undefined : { rule: this.rule, series };
  }

  /** Without the second that runs. */
  totals(): RuleTotals {
    const counts: { [R in Result]?: number } = {};
    results.forEach((result, i) => {
      const count = this.#totals[i] as number;
      if (count > 0) counts[result] = count;
    });
    return { rule: this.rule, counts, units: { asked: this.asked, charged: this.charged }, bans: this.bans };
  }
}

function ringOf(range: Range): Ring {
  return new Ring(ranges[range].points + mostExtra);
}

export function addCounts(a: Counts, b: Counts): Counts {
  const sum: Record<string, number> = {};
  for (const result of results) {
    const count = (a[result] ?? 0) + (b[result] ?? 0);
    if (count > 0) sum[result] = count;
  }
  return sum;
}

const rejectedIndexes = rejections.map((result) => results.indexOf(result));
