import type { Policy } from "../algorithms/registry.js";

/** What a check answers. Times are whole milliseconds from the reading of the store's clock. */
export interface Decision {
  /** Whether the request may pass. A rejection is a result, never an exception. */
  readonly allowed: boolean;
  /** The largest cost that could ever pass: the policy's `limit`, `capacity` or `burst`. */
  readonly limit: number;
  /** The largest cost that would pass right now, after this decision; never below 0. */
  readonly remaining: number;
  /** The least wait after which another request of the same cost passes if nothing else happens; 0 if it would at once, Infinity if never. */
  readonly retryAfterMs: number;
  /** The time after which the state is the same as none. */
  readonly resetAfterMs: number;
  /** How long to hold an allowed request (`leakyBucket`); 0 elsewhere. */
  readonly delayMs: number;
  /** The units that the request asked for. */
  readonly cost: number;
  /** The time that the charge counts from, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The limiter's name. */
  readonly name: string;
  readonly policy: Policy;
  /**
   * True where the store could not be asked, and `onStoreError` decided. Of a fallback the numbers are true of its own counts,
   * with `limit` this process's share; else nothing is known of the key: `remaining` and `resetAfterMs` are 0, and `retryAfterMs`
   * is 0 or, where it is rejected, the time until the store is asked again.
   */
  readonly degraded: boolean;
}

/** What a check of several limits answers: all are charged, or none is. */
export interface CombinedDecision {
  readonly allowed: boolean;
  /** The most restrictive one. */
  readonly decision: Decision;
  /** One a check, in the order of the checks; each says whether that limit alone would allow. */
  readonly all: readonly Decision[];
}

/**
 * The decision to report of several: of those that reject, the longest wait; else the smallest share remaining.
 * The first of equals, so that the order of the checks settles ties.
 */
export function mostRestrictive(decisions: readonly Decision[]): Decision {
  let worst = decisions[0] as Decision;
  for (let i = 1; i < decisions.length; i++) {
    const next = decisions[i] as Decision;
    if (moreRestrictive(next, worst)) worst = next;
  }
  return worst;
}

/** Whether `a` leaves the client less room than `b`. */
export function moreRestrictive(a: Decision, b: Decision): boolean {
  if (a.allowed !== b.allowed) return b.allowed;
  if (!a.allowed) return a.retryAfterMs > b.retryAfterMs;
  return a.remaining / a.limit < b.remaining / b.limit;
}
