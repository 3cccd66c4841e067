import { type Duration, durationOption, durationText, formatDuration } from "../support/duration.js";
import { checkOptions, quotaNumber } from "../support/options.js";
import {
  type Algorithm,
  type AlgorithmDefinition,
  type Cells,
  type DecisionUnder,
  emptyView,
  type Limit,
  type PolicyBase,
  register,
  type WindowsView,
} from "./algorithm.js";
import { windowChangeOf } from "./debt.js";
import { MadeDecision } from "./decision.js";

/** A count that restarts at every whole multiple of the window. */
export interface FixedWindowPolicy extends PolicyBase {
  readonly algorithm: "fixed-window";
  readonly limit: number;
  readonly windowMs: number;
}

export interface FixedWindowOptions {
  /** The most units in a window; 0 rejects every request. */
  limit: number;
  /** How long a window is: `"1m"`. */
  window: Duration;
}

/**
 * At most `limit` units in each window. Windows start at whole multiples of `window` since the epoch. The cheapest algorithm; across a
 * window's edge, up to twice the limit can pass within the length of one window.
 *
 *     fixedWindow({ limit: 100, window: "1m" })
 */
export function fixedWindow(options: FixedWindowOptions): FixedWindowPolicy {
  checkOptions("fixedWindow", options, ["limit", "window"], 'fixedWindow({ limit: 100, window: "1m" })');
  const limit = quotaNumber("fixedWindow", "limit", options.limit);
  const windowMs = durationOption("fixedWindow", "window", options.window);
  return Object.freeze({
    algorithm: "fixed-window",
    limit,
    windowMs,
    quota: limit,
    spanMs: windowMs,
    stateKind: `fixed-window ${windowMs}`,
  });
}

/** The start of the window, and the units taken in it. They exceed the limit if it was higher before, or after a debt. */
const layout = ["start", "count"] as const;
export const START: number = layout.indexOf("start");
export const COUNT: number = layout.indexOf("count");

/** Decides a request in a window that holds `taken` units. Fixed and calendar windows differ in their edges only. */
export function decideInWindow<Q extends PolicyBase>(
  limit: Pick<Limit<Q>, "name" | "policy">,
  cells: Cells,
  at: number,
  nowMs: number,
  cost: number,
  commit: boolean,
  start: number,
  end: number,
  taken: number,
): DecisionUnder<Q> {
  const { quota } = limit.policy;
  let count = taken;
  const allowed = cost <= quota - count;
  if (allowed && commit) {
    count += cost;
    cells[at + START] = start;
    cells[at + COUNT] = count;
  }
  const remaining = count > quota ? 0 : quota - count;
  const resetAfterMs = count === 0 ? 0 : end - nowMs;
  const retryAfterMs = cost <= remaining ? 0 : cost > quota ? Number.POSITIVE_INFINITY : resetAfterMs;
  // `Math.max` would allocate another number.
  let atMs = nowMs;
  if (start > nowMs) atMs = start;
  return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: 0, atMs });
}

/** Settles a charge in the window from `start`, which holds `count` units. Returns the change. */
export function settleInWindow(cells: Cells, at: number, start: number, count: number, reserved: number, cost: number): number {
  const change = Math.max(-count, Math.min(windowChangeOf(reserved, cost), Number.MAX_SAFE_INTEGER - count));
  cells[at + START] = count + change === 0 ? 0 : start;
  cells[at + COUNT] = count + change;
  return change;
}

export function viewOfWindow(limit: number, startMs: number, endMs: number, count: number): WindowsView {
  return { kind: "windows", windowMs: endMs - startMs, limit, windows: [{ startMs, endMs, count, weight: 1 }] };
}

const algorithm: Algorithm<FixedWindowPolicy> = {
  name: "fixed-window",
  parameters: ["limit", "windowMs"],
  cells: layout,

  windowEndMs: ({ windowMs }, atMs) => (Math.floor(atMs / windowMs) + 1) * windowMs,

  size: () => layout.length,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { windowMs } = limit.policy;
    let start = cells[at + START] as number;
    let count = cells[at + COUNT] as number;
    if (count === 0 || start - nowMs > windowMs || nowMs - start >= windowMs) {
      start = Math.floor(nowMs / windowMs) * windowMs;
      count = 0;
    }
    return decideInWindow(limit, cells, at, nowMs, cost, commit, start, start + windowMs, count);
  },

  settle({ windowMs }, cells, at, nowMs, chargedAtMs, reserved, cost) {
    let start = cells[at + START] as number;
    let count = cells[at + COUNT] as number;
    if (count === 0 || start - nowMs > windowMs || nowMs - start >= windowMs) {
      if (reserved > 0) return 0;
      start = Math.floor(nowMs / windowMs) * windowMs;
      count = 0;
    }
    if (reserved > 0 && (chargedAtMs < start || chargedAtMs - start >= windowMs)) return 0;
    return settleInWindow(cells, at, start, count, reserved, cost);
  },

  view({ limit, windowMs }, cells, at, nowMs) {
    const startMs = cells[at + START] as number;
    const count = cells[at + COUNT] as number;
    if (count === 0 || startMs - nowMs > windowMs || nowMs - startMs >= windowMs) return emptyView;
    return viewOfWindow(limit, startMs, startMs + windowMs, count);
  },
};

export const fixedWindowDefinition: AlgorithmDefinition<FixedWindowPolicy, FixedWindowOptions> = register("fixed-window", {
  numbers: ["limit", "window"],
  make: fixedWindow,
  optionsOf: ({ limit, windowMs }) => ({ limit, window: durationText(windowMs) }),
  share: ({ limit }, part) => ({ limit: part(limit) }),
  describe: ({ limit, windowMs }) => `${limit} per ${formatDuration(windowMs)}`,
  algorithms: [algorithm],
});
