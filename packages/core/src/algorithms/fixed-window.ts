import { type Duration, durationText, formatDuration, parseDuration } from "../support/duration.js";
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

/** The start of the window, and the units taken in it. They exceed the limit if it was higher before, or after a debt. */
const layout = ["start", "count"] as const;
const START = layout.indexOf("start");
const COUNT = layout.indexOf("count");
/** If windows differ in length, their end too. So a window keeps its edges if another process has other data of the time zone. */
const END = layout.length;

/** Whether a state counts no more: nothing was taken, the window has ended, or a clock that was wrong has begun it. */
function isOver(spanMs: number, start: number, end: number, count: number, nowMs: number): boolean {
  return count === 0 || nowMs >= end || start - nowMs > spanMs || end - start > 2 * spanMs;
}

/**
 * The algorithm of windows: fixed and calendar windows differ in their edges only.
 * @param edgesAt the edges around a time.
 * @param differ whether windows differ in length. If not, each is as long as the policy's span.
 */
export function windowAlgorithm<P extends PolicyBase>(
  facts: Pick<Algorithm<P>, "name" | "parameters" | "edges">,
  edgesAt: (policy: P, nowMs: number) => Edges,
  differ: boolean,
): Algorithm<P> {
  const names = differ ? [...layout, "end"] : layout;
  return {
    ...facts,
    cells: names,
    windowEndMs: (policy, atMs) => edgesAt(policy, atMs)[2],

    size: () => names.length,

    decide(limit, cells, at, nowMs, cost, commit) {
      const { policy } = limit;
      const { quota, spanMs } = policy;
      let start = cells[at + START] as number;
      let end = differ ? (cells[at + END] as number) : start + spanMs;
      let count = cells[at + COUNT] as number;
      if (isOver(spanMs, start, end, count, nowMs)) {
        [, start, end] = edgesAt(policy, nowMs);
        count = 0;
      }
      const allowed = cost <= quota - count;
      if (allowed && commit) {
        count += cost;
        cells[at + START] = start;
        cells[at + COUNT] = count;
        if (differ) cells[at + END] = end;
      }
      const remaining = count > quota ? 0 : quota - count;
      const resetAfterMs = count === 0 ? 0 : end - nowMs;
      const retryAfterMs = cost <= remaining ? 0 : cost > quota ? Number.POSITIVE_INFINITY : resetAfterMs;
      // `Math.max` would allocate another number.
      let atMs = nowMs;
      if (start > nowMs) atMs = start;
      return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs: 0, atMs });
    },

    settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
      let start = cells[at + START] as number;
      let end = differ ? (cells[at + END] as number) : start + policy.spanMs;
      let count = cells[at + COUNT] as number;
      if (isOver(policy.spanMs, start, end, count, nowMs)) {
        if (reserved > 0) return 0;
        [, start, end] = edgesAt(policy, nowMs);
        count = 0;
      }
      if (reserved > 0 && (chargedAtMs < start || chargedAtMs >= end)) return 0;
      const change = Math.max(-count, Math.min(windowChangeOf(reserved, cost), Number.MAX_SAFE_INTEGER - count));
      const isEmpty = count + change === 0;
      cells[at + START] = isEmpty ? 0 : start;
      cells[at + COUNT] = count + change;
      if (differ) cells[at + END] = isEmpty ? 0 : end;
      return change;
    },

    view(policy, cells, at, nowMs) {
      const startMs = cells[at + START] as number;
      const endMs = differ ? (cells[at + END] as number) : startMs + policy.spanMs;
      const count = cells[at + COUNT] as number;
      if (isOver(policy.spanMs, startMs, endMs, count, nowMs)) return emptyView;
      return { kind: "windows", windowMs: endMs - startMs, limit: policy.quota, windows: [{ startMs, endMs, count, weight: 1 }] };
    },
  };
}

const algorithm = windowAlgorithm<FixedWindowPolicy>(
  { name: "fixed-window", parameters: ["limit", "windowMs"] },
  ({ windowMs }, nowMs) => {
    const start = Math.floor(nowMs / windowMs) * windowMs;
    return [start - windowMs, start, start + windowMs, start + 2 * windowMs];
  },
  false,
);

export const fixedWindowDefinition: AlgorithmDefinition<FixedWindowPolicy, FixedWindowOptions> = register("fixed-window", {
  numbers: ["limit", "window"],
  make: fixedWindow,
  optionsOf: ({ limit, windowMs }) => ({ limit, window: durationText(windowMs) }),
  share: ({ limit }, part) => ({ limit: part(limit) }),
  describe: ({ limit, windowMs }) => `${limit} per ${formatDuration(windowMs)}`,
  algorithms: [algorithm],
});
