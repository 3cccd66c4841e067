import { type Duration, durationOption, durationText } from "../support/duration.js";
import { checkOptions, flag, quotaNumber } from "../support/options.js";
import {
  type Algorithm,
  type AlgorithmDefinition,
  type Cells,
  emptyView,
  type LoggedUnits,
  maxLoggedTimes,
  type PolicyBase,
  register,
} from "./algorithm.js";
import { maxDebt, windowChangeOf } from "./debt.js";
import { MadeDecision } from "./decision.js";

/** The times of the units taken. It is exact in every window. */
export interface SlidingWindowLogPolicy extends PolicyBase {
  readonly algorithm: "sliding-window-log";
  readonly limit: number;
  readonly windowMs: number;
  readonly countRejected: boolean;
}

export interface SlidingWindowLogOptions {
  /** The most units in any window; 0 rejects every request. */
  limit: number;
  /** How long a window is: `"1m"`. */
  window: Duration;
  /** Whether rejected requests count too. Default false. */
  countRejected?: boolean;
}

/**
 * At most `limit` units in any window, exactly. It stores the time of each unit, so the memory of a key grows with its traffic, up to
 * `limit` entries. With `countRejected`, rejected requests count too: a client must pause before it is allowed again.
 *
 *     slidingWindowLog({ limit: 100, window: "1m" })
 */
export function slidingWindowLog(options: SlidingWindowLogOptions): SlidingWindowLogPolicy {
  const where = "slidingWindowLog";
  checkOptions(where, options, ["limit", "window", "countRejected"], `${where}({ limit: 100, window: "1m" })`);
  const limit = quotaNumber(where, "limit", options.limit);
  const windowMs = durationOption(where, "window", options.window);
  const { countRejected = false } = options;
  flag(where, "countRejected", countRejected);
  return Object.freeze({
    algorithm: "sliding-window-log",
    limit,
    windowMs,
    countRejected,
    quota: limit,
    spanMs: windowMs,
    stateKind: `sliding-window-log ${windowMs}`,
  });
}

/**
 * Entries are pairs in order of time: an instant, and the number of units logged up to it, inclusive. So a binary search finds a unit.
 * `BASE` units before the first entry no longer count. The entries lie from `FROM` to `TO`. They can hold more units than the limit, if it
 * was higher before or there is a debt. Then no unit is admitted until fewer than `limit` of the newest are left.
 */
const layout = ["base", "from", "to", "entries"] as const;
const BASE = 0;
const FROM = 1;
const TO = 2;
const ENTRIES = 3;

/**
 * The most entries that a settlement changes. A charge with more entries after it is too far back to change: then a refund gives back the
 * oldest units that count, which leave first, and a debt counts from the newest entry on. So the log never counts less than the exact one.
 */
const maxChanged = 250;

/** The first entry from `from` on whose number in `column` (0: time, 1: units) is above `bound`; `to` if none is. */
function firstAbove(cells: Cells, entries: number, from: number, to: number, column: number, bound: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((cells[entries + 2 * middle + column] as number) > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The units that were logged before an entry. */
function totalBefore(cells: Cells, at: number, entry: number): number {
  return (entry > (cells[at + FROM] as number) ? cells[at + ENTRIES + 2 * entry - 1] : cells[at + BASE]) as number;
}

function unitsFrom(cells: Cells, at: number, from: number): number {
  return totalBefore(cells, at, cells[at + TO] as number) - totalBefore(cells, at, from);
}

/** The time that counts at `nowMs`: a time before the newest entry counts as that one's, unless a clock that was wrong has logged it. */
function timeOf(cells: Cells, at: number, nowMs: number, windowMs: number): number {
  const newest = newestOf(cells, at);
  return newest > nowMs && newest - nowMs <= windowMs ? newest : nowMs;
}

/** The time of the newest entry. A log without entries has -Infinity. */
function newestOf(cells: Cells, at: number): number {
  const to = cells[at + TO] as number;
  return to === 0 ? Number.NEGATIVE_INFINITY : (cells[at + ENTRIES + 2 * to - 2] as number);
}

/** The first entry that counts at `nowMs`; where the entries end if none does. */
function firstCounted(cells: Cells, at: number, nowMs: number, windowMs: number): number {
  const to = cells[at + TO] as number;
  const newest = newestOf(cells, at);
  if (newest - nowMs > windowMs) return to;
  return firstAbove(cells, at + ENTRIES, cells[at + FROM] as number, to, 0, Math.max(nowMs, newest) - windowMs);
}

const algorithm: Algorithm<SlidingWindowLogPolicy> = {
  name: "sliding-window-log",
  parameters: ["limit", "windowMs", "countRejected"],
  cells: layout,
  countsRejected: ({ countRejected }) => countRejected,
  grows: true,

  size: (_policy, cells, at) => ENTRIES + 2 * ((cells[at + TO] as number) + 1),

  decide(limit, cells, at, nowMs, cost, commit) {
    const { limit: quota, windowMs, countRejected } = limit.policy;
    const entries = at + ENTRIES;
    const atMs = timeOf(cells, at, nowMs, windowMs);
    const from = firstCounted(cells, at, nowMs, windowMs);
    let kept = unitsFrom(cells, at, from);
    const allowed = cost <= quota - kept;
    if (commit && (allowed || countRejected)) {
      const units = Math.min(cost, quota);
      // Each logged unit of a rejected request replaces the oldest one, so an excess over the limit stays the same.
      const replaced = Math.max(units - Math.max(quota - kept, 0), 0);
      append(cells, at, from, replaced, atMs, units);
      kept += units - replaced;
    }

    const remaining = Math.max(quota - kept, 0);
    const resetAfterMs = kept === 0 ? 0 : newestOf(cells, at) + windowMs - nowMs;
    let retryAfterMs = 0;
    if (cost > quota) {
      retryAfterMs = Number.POSITIVE_INFINITY;
    } else if (cost > remaining) {
      // The unit whose end makes room for `cost` units.
      const to = cells[at + TO] as number;
      const entry = firstAbove(cells, entries, cells[at + FROM] as number, to, 1, totalBefore(cells, at, to) - (quota - cost) - 1);
      retryAfterMs = (cells[entries + 2 * entry] as number) + windowMs - nowMs;
    }
    return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: 0, atMs });
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    const { windowMs } = policy;
    const entries = at + ENTRIES;
    const to = cells[at + TO] as number;
    if (reserved === 0) return record(policy, cells, at, nowMs, cost);
    const newest = newestOf(cells, at);
    const leftMs = Math.max(nowMs, newest) - windowMs;
    if (newest - nowMs > windowMs || chargedAtMs <= leftMs) return 0;
    const total = cells[entries + 2 * to - 1] as number;
    const base = cells[at + BASE] as number;
    const from = cells[at + FROM] as number;
    const entry = firstAbove(cells, entries, from, to, 0, chargedAtMs - 1);
    if (entry === to) return 0;
    // Rejected requests may have replaced the charge. Then nothing is given back, and its debt counts from the first of them.
    let units = 0;
    if (cells[entries + 2 * entry] === chargedAtMs) units = (cells[entries + 2 * entry + 1] as number) - totalBefore(cells, at, entry);
    const change = Math.max(-units, Math.min(windowChangeOf(reserved, cost), Math.max(maxDebt - (total - base), 0)));
    if (change === 0) return 0;
    // Debts do not accumulate in the numbers: before they get too large, they restart at the first unit that counts.
    const restarts = total + change > maxDebt;
    if (to - entry > maxChanged && !restarts) {
      if (change < 0) dropOldest(cells, at, firstAbove(cells, entries, from, to, 0, leftMs), -change);
      else (cells[entries + 2 * to - 1] as number) += change;
      return change;
    }
    const less = restarts ? base : 0;
    for (let i = restarts ? from : entry; i < to; i++) (cells[entries + 2 * i + 1] as number) += (i < entry ? 0 : change) - less;
    cells[at + BASE] = base - less;
    if (change === -units) {
      cells.copyWithin(entries + 2 * entry, entries + 2 * entry + 2, entries + 2 * to);
      cells[at + TO] = to - 1;
      // Entries that have left the window become zeros.
      if (to - 1 === from || (cells[entries + 2 * to - 4] as number) <= leftMs) cells.fill(0, at, entries + 2 * to);
    }
    return change;
  },

  view({ limit, windowMs }, cells, at, nowMs) {
    const entries = at + ENTRIES;
    const to = cells[at + TO] as number;
    const from = firstCounted(cells, at, nowMs, windowMs);
    if (from === to) return emptyView;
    const units: LoggedUnits[] = [];
    for (let i = Math.max(from, to - maxLoggedTimes); i < to; i++) {
      units.push({ atMs: cells[entries + 2 * i] as number, units: totalBefore(cells, at, i + 1) - totalBefore(cells, at, i) });
    }
    return { kind: "log", windowMs, limit, units, total: unitsFrom(cells, at, from) };
  },
};

/** Logs units that nothing was reserved for. They are one entry, however many they are. */
function record({ windowMs }: SlidingWindowLogPolicy, cells: Cells, at: number, nowMs: number, cost: number): number {
  const from = firstCounted(cells, at, nowMs, windowMs);
  const units = Math.max(Math.min(windowChangeOf(0, cost), maxDebt - unitsFrom(cells, at, from)), 0);
  if (units > 0) append(cells, at, from, 0, timeOf(cells, at, nowMs, windowMs), units);
  return units;
}

/** Stops counting the oldest `units`, from the entry `from` on. */
function dropOldest(cells: Cells, at: number, from: number, units: number): void {
  const entries = at + ENTRIES;
  const base = totalBefore(cells, at, from);
  cells[at + BASE] = base + units;
  cells[at + FROM] = firstAbove(cells, entries, from, cells[at + TO] as number, 1, base + units);
}

/**
 * Keeps the entries from `from` on, without the oldest `replaced` units, and appends one of `units` at `atMs`. The space of dropped entries is
 * reused. As with a settlement, the numbers restart before they get too large.
 */
function append(cells: Cells, at: number, from: number, replaced: number, atMs: number, units: number): void {
  const entries = at + ENTRIES;
  const to = cells[at + TO] as number;
  const base = from === to ? 0 : totalBefore(cells, at, from) + replaced;
  const total = from === to ? 0 : totalBefore(cells, at, to);
  let first = firstAbove(cells, entries, from, to, 1, base);
  let last = to;
  if (first * 2 >= last) {
    cells.copyWithin(entries, entries + 2 * first, entries + 2 * last);
    last -= first;
    first = 0;
  }
  if (last > first && cells[entries + 2 * last - 2] === atMs) last--;
  const less = total + units > maxDebt ? base : 0;
  if (less > 0) for (let i = first; i < last; i++) (cells[entries + 2 * i + 1] as number) -= less;
  cells[entries + 2 * last] = atMs;
  cells[entries + 2 * last + 1] = total - less + units;
  cells[at + BASE] = base - less;
  cells[at + FROM] = first;
  cells[at + TO] = last + 1;
}

export const slidingWindowLogDefinition: AlgorithmDefinition<SlidingWindowLogPolicy, SlidingWindowLogOptions> = register(
  "sliding-window-log",
  {
    numbers: ["limit", "window"],
    make: slidingWindowLog,
    optionsOf: ({ limit, windowMs, countRejected }) => ({ limit, window: durationText(windowMs), countRejected }),
    algorithms: [algorithm],
  },
);
