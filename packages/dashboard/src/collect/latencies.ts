import type { Latency } from "../contract.js";

/** Upper bounds grow by √2 from 1 µs: 64 of them reach an hour. */
const buckets = 64;
const leastMs = 0.001;
const partMs = 10_000;
const parts = 6;

/** Counts of durations: one per bucket, and the longest. */
export interface Histogram {
  readonly counts: readonly number[];
  readonly maxMs: number;
}

/** Durations of the last minute, as one histogram for each ten seconds. */
export class Latencies {
  readonly #parts: { readonly part: number; readonly counts: number[]; maxMs: number }[] = [];

  add(ms: number, nowMs: number): void {
    const part = Math.floor(nowMs / partMs);
    let own = this.#parts[part % parts];
    if (own?.part !== part) {
      own = { part, counts: new Array<number>(buckets).fill(0), maxMs: 0 };
      this.#parts[part % parts] = own;
    }
    (own.counts[bucketOf(ms)] as number)++;
    if (ms > own.maxMs) own.maxMs = ms;
  }

  histogram(nowMs: number): Histogram {
    const newest = Math.floor(nowMs / partMs);
    return mergeHistograms(this.#parts.filter(({ part }) => part > newest - parts && part <= newest));
  }
}

export function mergeHistograms(histograms: readonly Histogram[]): Histogram {
  return {
    counts: Array.from({ length: buckets }, (_, i) => histograms.reduce((sum, { counts }) => sum + (counts[i] ?? 0), 0)),
    maxMs: Math.max(0, ...histograms.map(({ maxMs }) => maxMs)),
  };
}

/** Percentiles. Each is the upper bound of its bucket, and at most the longest duration. */
export function latencyOf({ counts, maxMs }: Histogram): Latency | undefined {
  const count = counts.reduce((sum, each) => sum + each, 0);
  if (count === 0) return undefined;
  const percentile = (share: number): number => {
    let left = Math.ceil(share * count);
    const bucket = counts.findIndex((each) => {
      left -= each;
      return left <= 0;
    });
    return Math.min(maxMs, leastMs * 2 ** (bucket / 2));
  };
  return { count, p50Ms: percentile(0.5), p90Ms: percentile(0.9), p99Ms: percentile(0.99), maxMs };
}

/** The first bucket whose upper bound is at least `ms`. */
function bucketOf(ms: number): number {
  return ms <= leastMs ? 0 : Math.min(buckets - 1, Math.ceil(2 * Math.log2(ms / leastMs)));
}

/** Codes come from errors of any kind, so the number of different ones is capped. */
const maxCodes = 50;

/** What happened in one store since the process counts. */
export class StoreCounts {
  readonly latencies: Latencies = new Latencies();
  readonly #errors = new Map<string, number>();
  evictions = 0;

  fail(code: string): void {
    const known = this.#errors.has(code) || this.#errors.size < maxCodes ? code : "other";
    this.#errors.set(known, (this.#errors.get(known) ?? 0) + 1);
  }

  errors(): { readonly code: string; readonly count: number }[] {
    return [...this.#errors].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count);
  }
}
