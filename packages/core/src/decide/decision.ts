import type { DecisionUnder } from "../algorithms/decision.js";
import type { Policy } from "../algorithms/registry.js";

/** The result of a check. Durations are whole milliseconds from the store's current time. */
export interface Decision extends DecisionUnder<Policy> {
  /** The policy that decided. */
  readonly policy: Policy;
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
