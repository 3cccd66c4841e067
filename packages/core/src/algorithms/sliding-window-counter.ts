import { type Duration, durationOption, durationText } from "../support/duration.js";
import { invalidOption } from "../support/errors.js";
import { checkOptions, flag, quotaNumber, wholeNumber } from "../support/options.js";
import {
  type Algorithm,
  type AlgorithmDefinition,
  type Cells,
  checkExact,
  type DecisionUnder,
  emptyView,
  type NamedPolicy,
  type PolicyBase,
  register,
  type WindowView,
} from "./algorithm.js";
import { changeOf } from "./debt.js";
import { MadeDecision } from "./decision.js";

/** Counts of a few sub-windows. The one that is leaving the window counts in proportion to the part that is still inside. */
export interface SlidingWindowCounterPolicy extends PolicyBase {
  readonly algorithm: "sliding-window-counter";
  readonly limit: number;
  readonly windowMs: number;
  readonly buckets: number;
  /** Whether the oldest sub-window counts in full until all of it has left the window. */
  readonly strict: boolean;
  /** The width of a sub-window, in milliseconds. */
  readonly bucketMs: number;
}

export interface SlidingWindowCounterOptions {
  /** About the most units in any window; 0 rejects every request. */
  limit: number;
  /** How long a window is: `"1m"`. */
  window: Duration;
  /** Sub-windows that the window is cut into; it must divide evenly. Default 1. */
  buckets?: number;
  /**
   * Whether the sub-window that is leaving the window counts in full until all of it has left. Then no window ever holds more than `limit`
   * units, and a rejected request waits at most the window and a sub-window. It needs at least 2 buckets, and rejects a little too much:
   * with 60 buckets, a sixtieth. Default false.
   */
  strict?: boolean;
}

/**
 * About `limit` units in any window, estimated from `buckets` + 1 counts. One bucket (the default) means the classic two counters; more
 * buckets come closer to the log. Source: Cloudflare, "How we built rate limiting" (2017).
 *
 *     slidingWindowCounter({ limit: 100, window: "1m" })
 */
export function slidingWindowCounter(options: SlidingWindowCounterOptions): SlidingWindowCounterPolicy {
  const where = "slidingWindowCounter";
  checkOptions(where, options, ["limit", "window", "buckets", "strict"], `${where}({ limit: 100, window: "1m" })`);
  const limit = quotaNumber(where, "limit", options.limit);
  const windowMs = durationOption(where, "window", options.window);
  const buckets = options.buckets === undefined ? 1 : wholeNumber(where, "buckets", options.buckets, 1, 6);
  if (windowMs % buckets !== 0) {
    throw invalidOption(
      `${where}: \`window\` (${windowMs} ms) must divide evenly into \`buckets\`, but was to be cut into ${buckets}. Write buckets: ${nearestDivisor(windowMs, buckets)}.`,
    );
  }
  const { strict = false } = options;
  flag(where, "strict", strict);
  if (strict && buckets < 2) {
    throw invalidOption(
      `${where}: \`strict\` needs \`buckets\` of at least 2, but there is 1. Write buckets: ${evenBuckets(windowMs)}, or leave \`strict\` out.`,
    );
  }
  const bucketMs = windowMs / buckets;
  // A count with a debt as large as the limit, times the width, stays below 2^53. So do all counts together.
  const factor = Math.max(bucketMs, buckets + 1);
  checkExact(
    where,
    limit * factor,
    `Lower the limit to at most ${Math.floor(2 ** 52 / factor)}, shorten the window, or use more buckets.`,
    2 ** 52,
  );
  return Object.freeze({
    algorithm: "sliding-window-counter",
    limit,
    windowMs,
    buckets,
    strict,
    bucketMs,
    quota: limit,
    spanMs: windowMs,
    stateKind: `sliding-window-counter ${windowMs} ${buckets}`,
  });
}

/** The next lower number that divides the window. Starts at 1,000 at most: more buckets are no use, and the search would take long. */
function nearestDivisor(windowMs: number, wanted: number): number {
  for (let parts = Math.min(wanted - 1, 1000); parts > 1; parts--) if (windowMs % parts === 0) return parts;
  return 1;
}

function evenBuckets(windowMs: number): number {
  return [60, 10, 6, 5, 3, 2].find((buckets) => windowMs % buckets === 0) ?? windowMs;
}

/** The start of the newest sub-window; then its count and the earlier counts, newest first. A negative count includes a debt. */
const layout = ["start", "counts"] as const;
const START = 0;
const COUNTS = 1;

/** The units of a count. It is clamped to the limit, which may have been higher before; a debt is not clamped. */
function counted(count: number, limit: number): number {
  return count < 0 ? -count : Math.min(count, limit);
}

/**
 * A count after a settlement of `change` units (negative: given back). A charge beyond the limit of the settling plan makes the count a
 * debt, which no plan clamps. It stays a debt until the count is 0.
 */
function settled(count: number, change: number, limit: number): number {
  const units = Math.abs(count) + change;
  return units > 0 && (count < 0 || (change > 0 && units > limit)) ? -units : units;
}

/** The age of the state in sub-windows. Beyond the last bucket, nothing of the state counts. */
function passed(policy: SlidingWindowCounterPolicy, start: number, nowMs: number): number {
  if (start - nowMs > policy.windowMs) return policy.buckets + 1;
  const away = nowMs - start;
  return away < policy.bucketMs ? 0 : Math.floor(away / policy.bucketMs);
}

const algorithm: Algorithm<SlidingWindowCounterPolicy> = {
  name: "sliding-window-counter",
  parameters: ["limit", "windowMs", "buckets", "strict"],
  cells: layout,
  weight({ buckets, bucketMs, strict }, units, chargedAtMs, nowMs) {
    const elapsedMs = nowMs - Math.floor(chargedAtMs / bucketMs) * bucketMs;
    const leftMs = (buckets + 1) * bucketMs - elapsedMs;
    if (strict) return leftMs > 0 ? units : 0;
    return leftMs > bucketMs ? units : Math.floor((units * Math.max(leftMs, 0)) / bucketMs);
  },

  size: (policy) => policy.buckets + 2,

  decide(limit, cells, at, nowMs, cost, commit) {
    const policy = limit.policy;
    const { limit: quota, buckets, strict, bucketMs } = policy;
    const counts = at + COUNTS;
    let start = cells[at + START] as number;
    const away = nowMs - start;
    // The usual state needs no loop: one bucket, with a count in the current sub-window and none before it.
    if (buckets === 1 && away >= 0 && away < bucketMs && cells[counts + 1] === 0) {
      const count = cells[counts] as number;
      if (count > 0 && count <= quota) return decideRunning(limit, cells, counts, nowMs, cost, commit, start, count);
    }

    let past = passed(policy, start, nowMs);
    // `past` sub-windows have begun since the counts were written, so the count of age a is at counts + a - past.
    let oldest = 0;
    let newer = 0;
    let newestAge = buckets + 1;
    for (let age = buckets; age >= past; age--) {
      const count = cells[counts + age - past] as number;
      if (count === 0) continue;
      newestAge = age;
      if (age === buckets) oldest = counted(count, quota);
      else newer += counted(count, quota);
    }
    if (newestAge > buckets) {
      start = Math.floor(nowMs / bucketMs) * bucketMs;
      past = buckets + 1;
    } else if (past > 0) {
      start += past * bucketMs;
    }
    const elapsed = start > nowMs ? 0 : nowMs - start;
    const weighted = strict || oldest === 0 ? oldest : Math.floor((oldest * (bucketMs - elapsed)) / bucketMs);
    let remaining = quota - weighted - newer;
    const allowed = cost <= remaining;
    if (allowed && commit) {
      if (past > 0) shift(cells, counts, buckets, past);
      past = 0;
      cells[at + START] = start;
      // No count exceeds the limit if the request is allowed, so nothing was clamped. A debt stays a debt.
      const count = cells[counts] as number;
      cells[counts] = count < 0 ? count - cost : count + cost;
      newestAge = 0;
      newer += cost;
      remaining -= cost;
    } else if (remaining < 0) {
      remaining = 0;
    }

    const retryAfterMs =
      cost <= remaining
        ? 0
        : cost > quota
          ? Number.POSITIVE_INFINITY
          : start - nowMs + wait(policy, cells, counts, past, oldest, newer, cost);
    // The time at which the newest sub-window with a count leaves the window.
    const resetAfterMs = newestAge > buckets ? 0 : start - nowMs + policy.windowMs + (1 - newestAge) * bucketMs;
    return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: 0, atMs: Math.max(start, nowMs) });
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    const { limit, buckets, bucketMs } = policy;
    const counts = at + COUNTS;
    const start = cells[at + START] as number;
    let past = passed(policy, start, nowMs);
    let cell = counts;
    if (reserved === 0) {
      if (isEmpty(cells, counts, buckets - past)) past = buckets + 1;
    } else {
      if (past > buckets) return 0;
      const age = Math.ceil((start - chargedAtMs) / bucketMs);
      if (chargedAtMs - start >= bucketMs || age > buckets - past) return 0;
      cell += Math.max(age, 0);
      if (cells[cell] === 0) return 0;
    }
    const count = reserved === 0 && past > 0 ? 0 : (cells[cell] as number);
    // As for the limit. Counts that have left the window count again if the clock steps back.
    let room = Math.floor(Number.MAX_SAFE_INTEGER / Math.max(bucketMs, buckets + 1));
    for (let i = counts + buckets - past; i >= counts; i--) room -= Math.abs(cells[i] as number);
    const change = Math.max(-Math.abs(count), Math.min(changeOf(reserved, cost), Math.max(room, 0)));
    if (change === 0) return 0;
    if (reserved === 0 && past > 0) {
      cells[at + START] = past > buckets ? Math.floor(nowMs / bucketMs) * bucketMs : start + past * bucketMs;
      shift(cells, counts, buckets, past);
      past = 0;
    }
    cells[cell] = settled(count, change, limit);
    // Sub-windows that have left the window become zeros.
    if (isEmpty(cells, counts, buckets - past)) cells.fill(0, at, counts + buckets + 1);
    return change;
  },

  view(policy, cells, at, nowMs) {
    const { limit, windowMs, buckets, strict, bucketMs } = policy;
    const past = passed(policy, cells[at + START] as number, nowMs);
    const currentMs = (cells[at + START] as number) + past * bucketMs;
    const windows: WindowView[] = [];
    for (let age = buckets; age >= past; age--) {
      const count = counted(cells[at + COUNTS + age - past] as number, limit);
      if (count === 0) continue;
      const startMs = currentMs - age * bucketMs;
      const leftMs = strict || age < buckets ? bucketMs : Math.min(currentMs + bucketMs - nowMs, bucketMs);
      windows.push({ startMs, endMs: startMs + bucketMs, count, weight: leftMs / bucketMs });
    }
    return windows.length > 0 ? { kind: "windows", windowMs, limit, windows } : emptyView;
  },
};

/** Decides on a state with one bucket, a count without debt in the current sub-window, and no count in the one before. */
function decideRunning<P extends SlidingWindowCounterPolicy>(
  limit: NamedPolicy<P>,
  cells: Cells,
  counts: number,
  nowMs: number,
  cost: number,
  commit: boolean,
  start: number,
  count: number,
): DecisionUnder<P> {
  const { limit: quota, windowMs, bucketMs } = limit.policy;
  let remaining = quota - count;
  const allowed = cost <= remaining;
  if (allowed && commit) {
    cells[counts] = count + cost;
    remaining -= cost;
  }
  let retryAfterMs = 0;
  if (cost > quota) retryAfterMs = Number.POSITIVE_INFINITY;
  else if (cost > remaining) retryAfterMs = start - nowMs + wait(limit.policy, cells, counts, 0, 0, quota - remaining, cost);
  const resetAfterMs = start - nowMs + windowMs + bucketMs;
  return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: 0, atMs: nowMs });
}

function isEmpty(cells: Cells, counts: number, buckets: number): boolean {
  for (let i = counts; i <= counts + buckets; i++) if (cells[i] !== 0) return false;
  return true;
}

function shift(cells: Cells, counts: number, buckets: number, past: number): void {
  const end = counts + buckets;
  for (let i = end; i >= counts; i--) cells[i] = i - past >= counts ? (cells[i - past] as number) : 0;
}

/**
 * The time, from the start of the current sub-window, at which a rejected request of `cost` units passes. In each later sub-window one count
 * leaves the window, and `room` is the weight that it may still have: the request fits as soon as ⌊leaving · rest / width⌋ ≤ room, so
 * leaving · rest < (room + 1) · width. In a strict policy it fits when all of that count has left.
 */
function wait(
  policy: SlidingWindowCounterPolicy,
  cells: Cells,
  counts: number,
  past: number,
  oldest: number,
  newer: number,
  cost: number,
): number {
  const { limit, buckets, strict, bucketMs } = policy;
  let ahead = 0;
  let leaving = oldest;
  let room = limit - cost - newer;
  while (room < 0) {
    ahead++;
    leaving = counted(cells[counts + buckets - past - ahead] as number, limit);
    room += leaving;
  }
  if (strict) return (ahead + 1) * bucketMs;
  // The usual rejection needs no division: a cost of 1 for a key at its limit.
  const rest = room + 1 === leaving ? bucketMs - 1 : Math.ceil(((room + 1) * bucketMs) / leaving) - 1;
  return (ahead + 1) * bucketMs - rest;
}

export const slidingWindowCounterDefinition: AlgorithmDefinition<SlidingWindowCounterPolicy, SlidingWindowCounterOptions> = register(
  "sliding-window-counter",
  {
    numbers: ["limit", "window", "buckets"],
    make: slidingWindowCounter,
    optionsOf: ({ limit, windowMs, buckets, strict }) => ({ limit, window: durationText(windowMs), buckets, strict }),
    algorithms: [algorithm],
  },
);
