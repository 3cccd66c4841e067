import type { Policy } from "../algorithms/registry.js";

/** The result of a check. Durations are whole milliseconds from the store's current time. */
export interface Decision {
  /** Whether the request may pass. A rejection is a result, never an exception. */
  readonly allowed: boolean;
  /** The largest cost that could ever pass: the policy's `limit`, `capacity` or `burst`. */
  readonly limit: number;
  /** The largest cost that would pass right now, after this decision; never below 0. */
  readonly remaining: number;
  /** The shortest wait after which a request of the same cost passes if nothing else happens. 0 if it passes now, Infinity if never. */
  readonly retryAfterMs: number;
  /** The time after which the key is as if it had never been used. */
  readonly resetAfterMs: number;
  /** How long to hold an allowed request (`leakyBucket`); 0 for all other policies. */
  readonly delayMs: number;
  /** The units that the request costs. */
  readonly cost: number;
  /** The time that the charge counts from, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The limiter's name. */
  readonly name: string;
  readonly policy: Policy;
  /**
   * Whether the store failed and `onStoreError` decided. With a fallback, the numbers are those of its own counts, and `limit` is this
   * process's share. Otherwise they are unknown: `remaining` and `resetAfterMs` are 0, and `retryAfterMs` is 0 or, if the request is
   * rejected, the time until the store is asked again.
   */
  readonly degraded: boolean;
}

/** The result of a check of several limits: all are charged, or none is. */
export interface CombinedDecision {
  readonly allowed: boolean;
  /** The most restrictive decision. */
  readonly decision: Decision;
  /** One decision per check, in order. Each says whether that limit alone would allow. */
  readonly all: readonly Decision[];
}

/**
 * The decision to report: the longest wait among rejections, else the smallest remaining share. The first check wins a tie.
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
