import { type Duration, parseDuration } from "../support/duration.js";
import { checkOptions, quotaNumber } from "../support/options.js";
import { type Algorithm, decision, type PolicyBase } from "./algorithm.js";
import { windowChangeOf } from "./debt.js";

/** A count that starts anew at every whole multiple of the window. */
export interface FixedWindowPolicy extends PolicyBase {
  readonly algorithm: "fixed-window";
  readonly limit: number;
  readonly windowMs: number;
}

/**
 * At most `limit` units in each window; windows start at whole multiples of `window` since the epoch.
 * The cheapest algorithm; across a window's edge up to twice the limit can pass within one window's time.
 */
export function fixedWindow(options: { limit: number; window: Duration }): FixedWindowPolicy {
  checkOptions("fixedWindow", options, ["limit", "window"], 'fixedWindow({ limit: 100, window: "1m" })');
  const limit = quotaNumber("fixedWindow", "limit", options.limit);
  const windowMs = parseDuration(options.window, "window");
  return Object.freeze({
    algorithm: "fixed-window",
    limit,
    windowMs,
    quota: limit,
    spanMs: windowMs,
    stateKind: `fixed-window ${windowMs}`,
  });
}

/** The window's start, and how many units were taken in it: more than the limit where it was higher, or where they are owed. */
const START = 0;
const COUNT = 1;

export const fixedWindowAlgorithm: Algorithm<FixedWindowPolicy> = {
  size: () => 2,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { limit: quota, windowMs } = limit.policy;
    let start = cells[at + START] as number;
    let count = cells[at + COUNT] as number;
    if (count === 0 || start - nowMs > windowMs || nowMs - start >= windowMs) {
      start = Math.floor(nowMs / windowMs) * windowMs;
      count = 0;
    }
    const allowed = cost <= quota - count;
    if (allowed && commit) {
      count += cost;
      cells[at + START] = start;
      cells[at + COUNT] = count;
    }
    const remaining = count > quota ? 0 : quota - count;
    const resetAfterMs = count === 0 ? 0 : start + windowMs - nowMs;
    const retryAfterMs = cost <= remaining ? 0 : cost > quota ? Number.POSITIVE_INFINITY : resetAfterMs;
    return decision(limit, quota, allowed, remaining, retryAfterMs, resetAfterMs, 0, cost, start > nowMs ? start : nowMs);
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    const { windowMs } = policy;
    const start = cells[at + START] as number;
    const count = cells[at + COUNT] as number;
    if (count === 0 || start - nowMs > windowMs || nowMs - start >= windowMs) return 0;
    if (chargedAtMs < start || chargedAtMs - start >= windowMs) return 0;
    const change = Math.max(-count, Math.min(windowChangeOf(reserved, cost), Number.MAX_SAFE_INTEGER - count));
    cells[at + COUNT] = count + change;
    if (count + change === 0) cells[at + START] = 0;
    return change;
  },
};
