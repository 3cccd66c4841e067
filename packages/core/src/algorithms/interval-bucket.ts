import type { Algorithm, Cells, PolicyBase } from "./algorithm.js";
import { changeOf, given, longestDebtMs, mostMissing } from "./debt.js";
import { MadeDecision } from "./decision.js";
import { emptyView } from "./state-view.js";

/** The numbers of a bucket with intervals. */
type IntervalPolicy = PolicyBase & { readonly capacity: number; readonly refill: number; readonly everyMs: number };

/**
 * The tokens after the last charge (negative in debt), the last refill before it, and the largest numbers that charged the state: see
 * shared.ts. A capacity of 0 means that the key was not used.
 */
const layout = ["tokens", "last", "capacity", "refill"] as const;
const TOKENS = layout.indexOf("tokens");
const LAST = layout.indexOf("last");
const CAPACITY = layout.indexOf("capacity");
const REFILL = layout.indexOf("refill");

/** The time until this many tokens have arrived. */
function takesMs(tokens: number, refill: number, everyMs: number): number {
  return Math.ceil(tokens / refill) * everyMs;
}

/** When the state's own bucket is full. -Infinity without a state, if no plan can have its numbers, or if it is too far ahead of the clock. */
function endOf({ capacity, refill, everyMs, spanMs }: IntervalPolicy, cells: Cells, at: number, nowMs: number): number {
  const most = cells[at + CAPACITY] as number;
  const fastest = cells[at + REFILL] as number;
  const aheadMs = (cells[at + LAST] as number) - nowMs;
  if (most === 0 || takesMs(most, fastest, everyMs) > Math.max(spanMs, longestDebtMs)) return Number.NEGATIVE_INFINITY;
  if (aheadMs > 0 && aheadMs > takesMs(Math.max(most, capacity), Math.max(fastest, refill), everyMs)) return Number.NEGATIVE_INFINITY;
  return (cells[at + LAST] as number) + takesMs(most - (cells[at + TOKENS] as number), fastest, everyMs);
}

/** The whole refills since the last one of the state. */
function refills({ everyMs }: IntervalPolicy, cells: Cells, at: number, nowMs: number): number {
  const last = cells[at + LAST] as number;
  return nowMs <= last ? 0 : Math.floor((nowMs - last) / everyMs);
}

/** The token bucket with `style: "interval"`: `refill` tokens arrive at each whole `every`. A full bucket has no state. */
export const intervalBucket: Algorithm<IntervalPolicy> = {
  name: "interval-bucket",
  parameters: ["capacity", "refill", "everyMs"],
  cells: layout,
  recoveryMs: ({ capacity, refill, everyMs }, units) => takesMs(capacity + units, refill, everyMs),
  refilledMs: ({ everyMs }, chargedAtMs, fullAtMs) => fullAtMs - Math.ceil((fullAtMs - chargedAtMs) / everyMs) * everyMs,

  size: () => layout.length,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { capacity, refill, everyMs, spanMs } = limit.policy;
    const stored = cells[at + LAST] as number;
    // If no other plan charges the key, the state ends when this plan's bucket is full.
    const own = cells[at + CAPACITY] === capacity && cells[at + REFILL] === refill;
    const shared = !own && nowMs < endOf(limit.policy, cells, at, nowMs);
    let tokens = capacity;
    let last = nowMs;
    // Without a debt, the bucket is full after one span.
    const counts = own && stored - nowMs <= spanMs && (nowMs - stored < spanMs || (cells[at + TOKENS] as number) < 0);
    if (shared || counts) {
      const count = nowMs <= stored ? 0 : Math.floor((nowMs - stored) / everyMs);
      // A product above 2^53 is rounded, but it fills the bucket in any case.
      tokens = Math.min((cells[at + TOKENS] as number) + count * refill, capacity);
      // Refills restart only if the bucket of every plan is full.
      if (tokens < capacity || (shared && capacity < (cells[at + CAPACITY] as number))) last = stored + count * everyMs;
    }
    const allowed = cost <= tokens;
    if (allowed && commit) {
      tokens -= cost;
      const most = shared ? Math.max(cells[at + CAPACITY] as number, capacity) : capacity;
      keep(cells, at, tokens, last, most, shared ? Math.max(cells[at + REFILL] as number, refill) : refill);
    }
    let fullAt = nowMs;
    if (tokens < capacity) {
      fullAt = last + takesMs(capacity - tokens, refill, everyMs);
      // The state may end before this plan's bucket would be full.
      if (shared) fullAt = Math.min(fullAt, endOf(limit.policy, cells, at, nowMs));
    }
    let retryAfterMs = 0;
    if (cost > capacity) retryAfterMs = Number.POSITIVE_INFINITY;
    else if (cost > tokens) retryAfterMs = Math.min(last + takesMs(cost - tokens, refill, everyMs), fullAt) - nowMs;
    const atMs = Math.max(nowMs, last);
    return new MadeDecision(limit, cost, {
      allowed,
      remaining: Math.max(tokens, 0),
      retryAfterMs,
      resetAfterMs: fullAt - nowMs,
      delayMs: 0,
      atMs,
    });
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    const { capacity, refill, everyMs } = policy;
    const exists = nowMs < endOf(policy, cells, at, nowMs);
    if (cost > reserved) {
      if (!exists) keep(cells, at, capacity, nowMs, capacity, refill);
      // Refills until now are added before the debt. Otherwise a faster plan could pay the debt with refills that a full bucket lost.
      const count = refills(policy, cells, at, nowMs);
      const tokens = Math.min((cells[at + TOKENS] as number) + count * refill, cells[at + CAPACITY] as number);
      const missing = (cells[at + CAPACITY] as number) - tokens;
      const room = mostMissing(cells[at + CAPACITY] as number, cells[at + REFILL] as number, everyMs) - missing;
      const units = Math.max(Math.min(changeOf(reserved, cost), room), 0);
      if (units === 0) return 0;
      cells[at + TOKENS] = tokens - units;
      (cells[at + LAST] as number) += count * everyMs;
      return units;
    }
    const last = cells[at + LAST] as number;
    // A charge after the refill that follows the last charge belongs to a state that a clock jump has ended.
    if (!exists || chargedAtMs - last >= everyMs) return 0;
    const count = refills(policy, cells, at, nowMs);
    // Refills happen at last + k · every. Those after the charge have given something back already.
    const since = Math.max(Math.ceil((last + count * everyMs - chargedAtMs) / everyMs), 0);
    const missing = capacity - Math.min((cells[at + TOKENS] as number) + count * refill, capacity);
    const due = given(reserved, cost, capacity, 1, since * Math.max(cells[at + REFILL] as number, refill));
    const back = Math.min(due, missing, (cells[at + CAPACITY] as number) - (cells[at + TOKENS] as number));
    if (back === 0) return 0;
    (cells[at + TOKENS] as number) += back;
    // A full bucket has no state.
    if (endOf(policy, cells, at, nowMs) <= Math.max(nowMs, last)) cells.fill(0, at, at + layout.length);
    return -back;
  },

  view(policy, cells, at, nowMs) {
    const { capacity, refill, everyMs } = policy;
    if (nowMs >= endOf(policy, cells, at, nowMs)) return emptyView;
    const count = refills(policy, cells, at, nowMs);
    const level = (cells[at + TOKENS] as number) + count * refill;
    if (level >= capacity) return emptyView;
    return { kind: "bucket", level, capacity, refillsAtMs: (cells[at + LAST] as number) + (count + 1) * everyMs };
  },
};

function keep(cells: Cells, at: number, tokens: number, last: number, capacity: number, refill: number): void {
  cells[at + TOKENS] = tokens;
  cells[at + LAST] = last;
  cells[at + CAPACITY] = capacity;
  cells[at + REFILL] = refill;
}
