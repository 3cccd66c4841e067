import { type Algorithm, type Cells, decision } from "./algorithm.js";
import { changeOf, deepest, given } from "./debt.js";
import { endOnceCharged, endOnceSettled } from "./end.js";
import type { TokenBucketPolicy } from "./token-bucket.js";

/** The tokens after the last charge, below 0 in debt, the last refill before it, when the bucket is full; and a mark that there is a state. */
const TOKENS = 0;
const LAST = 1;
const MARK = 2;
const FULL_AT = 3;

/** Whole refills since the state's last one, or -1 where there is no state. */
function refills(policy: TokenBucketPolicy, cells: Cells, at: number, nowMs: number): number {
  const last = cells[at + LAST] as number;
  if (cells[at + MARK] === 0 || last - nowMs > policy.spanMs || nowMs >= (cells[at + FULL_AT] as number)) return -1;
  return nowMs <= last ? 0 : Math.floor((nowMs - last) / policy.everyMs);
}

/** The state's tokens as this policy counts them. */
function tokensThen(policy: TokenBucketPolicy, cells: Cells, at: number): number {
  const tokens = cells[at + TOKENS] as number;
  return tokens < 0 ? Math.max(tokens, fewest(policy)) : Math.min(tokens, policy.capacity);
}

/** As few as a debt leaves: the refills that pay it off come before 2^52 ms have passed. */
function fewest({ capacity, refill, everyMs }: TokenBucketPolicy): number {
  return Math.min(capacity - Math.min(Math.floor(deepest / everyMs) * refill, deepest), 0);
}

/** A product above 2^53 is rounded, and more than there is room for all the same. */
function tokensAfter(policy: TokenBucketPolicy, cells: Cells, at: number, count: number): number {
  return count < 0 ? policy.capacity : Math.min(policy.capacity, tokensThen(policy, cells, at) + count * policy.refill);
}

/** Token bucket, by interval: `refill` tokens at each whole `every`; a full bucket has no memory. */
export const intervalBucketAlgorithm: Algorithm<TokenBucketPolicy> = {
  size: () => 4,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { capacity, refill, everyMs } = limit.policy;
    const count = refills(limit.policy, cells, at, nowMs);
    let tokens = tokensAfter(limit.policy, cells, at, count);
    const last = tokens === capacity ? nowMs : (cells[at + LAST] as number) + count * everyMs;
    const allowed = cost <= tokens;
    let fullAt = nowMs;
    if (allowed && commit) {
      const own = count < 0 || isOwn(limit.policy, cells, at);
      tokens -= cost;
      fullAt = endOf(limit.policy, tokens, last);
      keep(cells, at, tokens, last, endOnceCharged(own, fullAt, cells[at + FULL_AT] as number));
    } else if (tokens < capacity) {
      // A state that other policies have charged may end before this one's bucket would be full.
      fullAt = Math.min(endOf(limit.policy, tokens, last), cells[at + FULL_AT] as number);
    }
    let retryAfterMs = 0;
    if (cost > capacity) retryAfterMs = Number.POSITIVE_INFINITY;
    else if (cost > tokens) retryAfterMs = Math.min(last + Math.ceil((cost - tokens) / refill) * everyMs, fullAt) - nowMs;
    const atMs = Math.max(nowMs, last);
    const remaining = Math.max(tokens, 0);
    return decision(limit, capacity, allowed, remaining, retryAfterMs, tokens < capacity ? fullAt - nowMs : 0, 0, cost, atMs);
  },

  settle(policy, cells, at, nowMs, chargedAtMs, reserved, cost) {
    const { capacity, refill, everyMs } = policy;
    const count = refills(policy, cells, at, nowMs);
    const exists = count >= 0;
    // The state keeps its own time, so it changes by as much for every policy.
    const stored = exists ? (cells[at + TOKENS] as number) : capacity;
    const last = exists ? (cells[at + LAST] as number) : nowMs;
    const storedFullAt = exists ? (cells[at + FULL_AT] as number) : nowMs;
    const own = !exists || isOwn(policy, cells, at);
    if (cost > reserved) {
      const units = Math.max(Math.min(changeOf(reserved, cost), Math.min(stored, capacity) - fewest(policy)), 0);
      const tokens = stored - units;
      const takesMs = Math.ceil(units / refill) * everyMs;
      if (units > 0) keep(cells, at, tokens, last, endOnceSettled(own, endOf(policy, tokens, last), storedFullAt, takesMs, nowMs));
      return units;
    }
    // A charge after the refill that follows the last charge is of a state that a clock's jump made void.
    if (!exists || chargedAtMs - last >= everyMs) return 0;
    // Refills lie at last + k · every: those after the charge have put something in already.
    const since = Math.max(Math.ceil((last + count * everyMs - chargedAtMs) / everyMs), 0);
    const missing = capacity - tokensAfter(policy, cells, at, count);
    const back = Math.min(given(reserved, cost, capacity, 1, since * refill), missing, deepest);
    if (back === 0) return 0;
    if (own && back === missing) cells.fill(0, at, at + 4);
    else keep(cells, at, stored + back, last, endOnceSettled(own, endOf(policy, stored + back, last), storedFullAt, 0, nowMs));
    return -back;
  },
};

/** When the refills that come after the last one have filled the bucket. */
function endOf({ capacity, refill, everyMs }: TokenBucketPolicy, tokens: number, last: number): number {
  return last + Math.ceil((capacity - tokens) / refill) * everyMs;
}

function isOwn(policy: TokenBucketPolicy, cells: Cells, at: number): boolean {
  return cells[at + FULL_AT] === endOf(policy, cells[at + TOKENS] as number, cells[at + LAST] as number);
}

function keep(cells: Cells, at: number, tokens: number, last: number, fullAt: number): void {
  cells[at + TOKENS] = tokens;
  cells[at + LAST] = last;
  cells[at + MARK] = 1;
  cells[at + FULL_AT] = fullAt;
}
