import { type Duration, durationOption, durationText } from "../support/duration.js";
import { checkOptions, quotaNumber } from "../support/options.js";
import { type Algorithm, type AlgorithmDefinition, type Edges, emptyView, type PolicyBase, register } from "./algorithm.js";
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
const START = 0;
const COUNT = 1;
/** Where windows of several lengths store their end. So a window keeps its edges if another process has other data of the time zone. */
const END = 2;

/**
 * Whether a state counts no more: nothing was taken, the window has ended, or a clock that was wrong has begun it. No window is longer than
 * two spans.
 */
function isOver({ spanMs }: PolicyBase, start: number, end: number, count: number, nowMs: number): boolean {
  return count === 0 || nowMs >= end || start - nowMs > spanMs || end - start > 2 * spanMs;
}

/** The edges of windows that start at whole multiples of the span. */
function multiplesAt({ spanMs }: PolicyBase, nowMs: number): Edges {
  const start = Math.floor(nowMs / spanMs) * spanMs;
  return [start - spanMs, start, start + spanMs, start + 2 * spanMs];
}

/**
 * The algorithm of windows whose count restarts at each edge.
 * @param edges their edges. Default: the whole multiples of the policy's span.
 */
export function windowAlgorithm<P extends PolicyBase>(
  name: string,
  parameters: Algorithm<P>["parameters"],
  edges?: Algorithm<P>["edges"],
): Algorithm<P> {
  const hasEnd = edges !== undefined;
  const cells = hasEnd ? [...layout, "end"] : layout;
  const edgesAt = edges ?? multiplesAt;

  return {
    name,
    parameters,
    cells,
    ...(hasEnd && { edges }),
    windowEndMs: (policy, atMs) => edgesAt(policy, atMs)[2],

    size: () => cells.length,

    decide(limit, state, at, nowMs, cost, commit) {
      const { policy } = limit;
      const { quota } = policy;
      let start = state[at + START] as number;
      let end = hasEnd ? (state[at + END] as number) : start + policy.spanMs;
      let count = state[at + COUNT] as number;
      if (isOver(policy, start, end, count, nowMs)) {
        [, start, end] = edgesAt(policy, nowMs);
        count = 0;
      }
      const allowed = cost <= quota - count;
      if (allowed && commit) {
        count += cost;
        state[at + START] = start;
        state[at + COUNT] = count;
        if (hasEnd) state[at + END] = end;
      }
      const remaining = count > quota ? 0 : quota - count;
      const resetAfterMs = count === 0 ? 0 : end - nowMs;
      const retryAfterMs = cost <= remaining ? 0 : cost > quota ? Number.POSITIVE_INFINITY : resetAfterMs;
      // `Math.max` would allocate another number.
      let atMs = nowMs;
      if (start > nowMs) atMs = start;
      return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: 0, atMs });
    },

    settle(policy, state, at, nowMs, chargedAtMs, reserved, cost) {
      let start = state[at + START] as number;
      let end = hasEnd ? (state[at + END] as number) : start + policy.spanMs;
      let count = state[at + COUNT] as number;
      if (isOver(policy, start, end, count, nowMs)) {
        if (reserved > 0) return 0;
        [, start, end] = edgesAt(policy, nowMs);
        count = 0;
      }
      if (reserved > 0 && (chargedAtMs < start || chargedAtMs >= end)) return 0;
      const change = Math.max(-count, Math.min(windowChangeOf(reserved, cost), Number.MAX_SAFE_INTEGER - count));
      const isUsed = count + change > 0;
      state[at + START] = isUsed ? start : 0;
      state[at + COUNT] = count + change;
      if (hasEnd) state[at + END] = isUsed ? end : 0;
      return change;
    },

    view(policy, state, at, nowMs) {
      const startMs = state[at + START] as number;
      const endMs = hasEnd ? (state[at + END] as number) : startMs + policy.spanMs;
      const count = state[at + COUNT] as number;
      if (isOver(policy, startMs, endMs, count, nowMs)) return emptyView;
      return { kind: "windows", windowMs: endMs - startMs, limit: policy.quota, windows: [{ startMs, endMs, count, weight: 1 }] };
    },
  };
}

export const fixedWindowDefinition: AlgorithmDefinition<FixedWindowPolicy, FixedWindowOptions> = register("fixed-window", {
  numbers: ["limit", "window"],
  make: fixedWindow,
  optionsOf: ({ limit, windowMs }) => ({ limit, window: durationText(windowMs) }),
  algorithms: [windowAlgorithm("fixed-window", ["limit", "windowMs"])],
});
