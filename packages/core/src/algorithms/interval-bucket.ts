import { type Algorithm, type Cells, decision } from "./algorithm.js";
import type { TokenBucketPolicy } from "./token-bucket.js";

/** The tokens after the last charge, the last refill before it, when the bucket is full; and a mark that there is a state. */
const TOKENS = 0;
const LAST = 1;
const MARK = 2;
const FULL_AT = 3;

/** Whole refills since the state's last one, or -1 where there is no state. */
function refills(policy: TokenBucketPolicy, cells: Cells, at: number, nowMs: number): number {
  const last = cells[at + LAST] as number;
  if (cells[at + MARK] === 0 || last - nowMs > policy.spanMs || nowMs >= (cells[at + FULL_AT] as number)) return -1;
  return nowMs <= last ? 0 : Math.floor(Math.min(nowMs - last, policy.spanMs) / policy.everyMs);
}

function tokensAfter(policy: TokenBucketPolicy, cells: Cells, at: number, count: number): number {
  return count < 0 ? policy.capacity : Math.min(policy.capacity, (cells[at + TOKENS] as number) + count * policy.refill);
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
      tokens -= cost;
      fullAt = last + Math.ceil((capacity - tokens) / refill) * everyMs;
      cells[at + TOKENS] = tokens;
      cells[at + LAST] = last;
      cells[at + MARK] = 1;
      cells[at + FULL_AT] = fullAt;
    } else if (tokens < capacity) {
      // A state written under another policy is as good as none when that policy said so, or earlier.
      fullAt = Math.min(last + Math.ceil((capacity - tokens) / refill) * everyMs, cells[at + FULL_AT] as number);
    }
    let retryAfterMs = 0;
    if (cost > capacity) retryAfterMs = Number.POSITIVE_INFINITY;
    else if (cost > tokens) retryAfterMs = Math.min(last + Math.ceil((cost - tokens) / refill) * everyMs, fullAt) - nowMs;
    const atMs = Math.max(nowMs, last);
    return decision(limit, capacity, allowed, tokens, retryAfterMs, tokens < capacity ? fullAt - nowMs : 0, 0, cost, atMs);
  },

  refund(policy, cells, at, nowMs, chargedAtMs, cost) {
    const { capacity, refill, everyMs } = policy;
    const count = refills(policy, cells, at, nowMs);
    const tokens = tokensAfter(policy, cells, at, count);
    if (tokens === capacity) return 0;
    // A charge after the refill that follows the last charge is of a state that a clock's jump made void.
    if (chargedAtMs - (cells[at + LAST] as number) >= everyMs) return 0;
    const last = (cells[at + LAST] as number) + count * everyMs;
    // Refills lie at last - k · every: those after the charge have put something in already.
    const since = chargedAtMs >= last ? 0 : Math.ceil((last - chargedAtMs) / everyMs);
    const most = Math.ceil(capacity / refill);
    const back = Math.min(Math.min(cost, capacity) - Math.min(since, most) * refill, capacity - tokens);
    if (back <= 0) return 0;
    if (tokens + back === capacity) {
      cells.fill(0, at, at + 4);
    } else {
      const then = Math.min(cells[at + TOKENS] as number, capacity) + back;
      cells[at + TOKENS] = then;
      const fullAt = (cells[at + LAST] as number) + Math.ceil((capacity - then) / refill) * everyMs;
      cells[at + FULL_AT] = Math.min(fullAt, cells[at + FULL_AT] as number);
    }
    return back;
  },
};
