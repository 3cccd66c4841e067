import { type Duration, durationOption, durationText } from "../support/duration.js";
import { checkOptions, oneOf, quotaNumber, wholeNumber } from "../support/options.js";
import { type Algorithm, type AlgorithmDefinition, type Cells, checkExact, emptyView, type PolicyBase, register } from "./algorithm.js";
import { changeOf, maxDebtMs, maxMissing, refundedParts } from "./debt.js";
import { MadeDecision } from "./decision.js";
import { type Rate, rateOf, smoothBucket } from "./smooth-bucket.js";

/** Tokens arrive at a constant rate, up to the capacity. A request takes as many as it costs. */
export interface TokenBucketPolicy extends PolicyBase, Rate {
  readonly algorithm: "token-bucket";
  readonly capacity: number;
  readonly refill: number;
  readonly everyMs: number;
  readonly style: "smooth" | "interval";
}

export interface TokenBucketOptions {
  /** How many tokens the bucket holds, and so the most units at once; 0 rejects every request. */
  capacity: number;
  /** Tokens that come in every `every`. */
  refill: number;
  /** How long one refill takes: `"1s"`. */
  every: Duration;
  /** Whether tokens come in evenly, or all at once at the end of each `every`. Default `"smooth"`. */
  style?: "smooth" | "interval";
}

/**
 * Bursts of up to `capacity` units, and `refill` units per `every` in the long run. `style: "smooth"` (default) refills continuously;
 * `"interval"` adds `refill` tokens at each whole `every` after the last refill.
 *
 *     tokenBucket({ capacity: 20, refill: 10, every: "1s" })
 */
export function tokenBucket(options: TokenBucketOptions): TokenBucketPolicy {
  const where = "tokenBucket";
  checkOptions(where, options, ["capacity", "refill", "every", "style"], `${where}({ capacity: 20, refill: 10, every: "1s" })`);
  const capacity = quotaNumber(where, "capacity", options.capacity, 20);
  const refill = wholeNumber(where, "refill", options.refill, 1, 10);
  const everyMs = durationOption(where, "every", options.every);
  const style = options.style === undefined ? "smooth" : oneOf(where, "style", options.style, ["smooth", "interval"]);
  const stateKind = `token-bucket ${style} ${everyMs}`;
  const base = { algorithm: "token-bucket", capacity, refill, everyMs, style, quota: capacity, stateKind } as const;
  if (style === "smooth") return Object.freeze({ ...base, ...rateOf(where, capacity, refill, everyMs) });
  const spanMs = Math.ceil(capacity / refill) * everyMs;
  checkExact(where, Math.max(capacity + refill, spanMs), "Lower the capacity or the refill, or shorten `every`.");
  return Object.freeze({ ...base, unit: 1, flow: refill, divisor: 1, full: capacity, spanMs });
}

/**
 * The state with intervals: the tokens after the last charge (negative in debt), the last refill before it, and the largest numbers that
 * charged the state: see smooth-bucket.ts. A capacity of 0 means that the key was not used.
 */
const layout = ["tokens", "last", "capacity", "refill"] as const;
const TOKENS = 0;
const LAST = 1;
const CAPACITY = 2;
const REFILL = 3;

function takesMs(tokens: number, refill: number, everyMs: number): number {
  return Math.ceil(tokens / refill) * everyMs;
}

/** When the state's own bucket is full. -Infinity without a state, if no plan can have its numbers, or if it is too far ahead of the clock. */
function endOf({ capacity, refill, everyMs, spanMs }: TokenBucketPolicy, cells: Cells, at: number, nowMs: number): number {
  const most = cells[at + CAPACITY] as number;
  const fastest = cells[at + REFILL] as number;
  const aheadMs = (cells[at + LAST] as number) - nowMs;
  if (most === 0 || takesMs(most, fastest, everyMs) > Math.max(spanMs, maxDebtMs)) return Number.NEGATIVE_INFINITY;
  if (aheadMs > 0 && aheadMs > takesMs(Math.max(most, capacity), Math.max(fastest, refill), everyMs)) return Number.NEGATIVE_INFINITY;
  return (cells[at + LAST] as number) + takesMs(most - (cells[at + TOKENS] as number), fastest, everyMs);
}

/** The whole refills since the last one of the state. */
function refills({ everyMs }: TokenBucketPolicy, cells: Cells, at: number, nowMs: number): number {
  const last = cells[at + LAST] as number;
  return nowMs <= last ? 0 : Math.floor((nowMs - last) / everyMs);
}

/** The token bucket with `style: "interval"`: `refill` tokens arrive at each whole `every`. A full bucket has no state. */
const intervalBucket: Algorithm<TokenBucketPolicy> = {
  name: "interval-bucket",
  parameters: ["capacity", "refill", "everyMs"],
  cells: layout,
  recoveryMs: ({ capacity, refill, everyMs }, units) => takesMs(capacity + units, refill, everyMs),
  endOf,
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
      const count = refills(limit.policy, cells, at, nowMs);
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
      const room = maxMissing(cells[at + CAPACITY] as number, cells[at + REFILL] as number, everyMs) - missing;
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
    const due = refundedParts(reserved, cost, capacity, 1, since * Math.max(cells[at + REFILL] as number, refill));
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

export const tokenBucketDefinition: AlgorithmDefinition<TokenBucketPolicy, TokenBucketOptions> = register("token-bucket", {
  numbers: ["capacity", "refill", "every"],
  make: tokenBucket,
  optionsOf: ({ capacity, refill, everyMs, style }) => ({ capacity, refill, every: durationText(everyMs), style }),
  share({ capacity, refill, everyMs, style }, part, processes) {
    if (style === "smooth") return { capacity: part(capacity), every: durationText(everyMs * processes) };
    // All tokens arrive at one moment, so each process gets fewer each time. If there is less than one for each, they arrive less often.
    return { capacity: part(capacity), refill: part(refill), every: durationText(everyMs * Math.ceil(processes / refill)) };
  },
  algorithms: [smoothBucket, intervalBucket],
  algorithmOf: ({ style }) => (style === "interval" ? intervalBucket : smoothBucket),
});
