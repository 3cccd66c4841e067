import type { DecisionUnder, Limit as LimitUnder, Settler } from "../algorithms/algorithm.js";
import { type ChargeRecord as ChargeRecordUnder, chargeable, copyWith, linkAll, withCharge } from "../algorithms/decision.js";
import { algorithmOf, type Policy } from "../algorithms/registry.js";

export type Limit = LimitUnder<Policy>;
export type ChargeRecord = ChargeRecordUnder<Policy>;

/** One limit that a request must pass. */
export interface Check {
  readonly limit: Limit;
  /** The key, as `encodeKey` writes it: any string, of any length. */
  readonly key: string;
  /** A whole number of at least 1. */
  readonly cost: number;
  /** A shadow limit is counted but never rejects the request. */
  readonly shadow?: boolean;
  /** A limit that may reject the request but is never charged. */
  readonly dryRun?: boolean;
}

export function createLimit(name: string, policy: Policy, lease?: boolean): Limit {
  return Object.freeze({ name, policy, algorithm: algorithmOf(policy), lease });
}

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

/** Whether a request passes several limits: each of them allows it. Shadow limits reject nothing. */
export function passesAll(checks: readonly Pick<Check, "shadow">[], decisions: readonly Pick<Decision, "allowed">[]): boolean {
  for (let i = 0; i < checks.length; i++) {
    if (checks[i]?.shadow !== true && decisions[i]?.allowed !== true) return false;
  }
  return true;
}

/**
 * The combined decision of several checks in one atomic step. Shadow checks reject nothing, and are reported only if there are no others. A
 * rejected request was not charged, so no decision has a delay.
 * @param settler settles what was charged. Without it, no charge is attached.
 */
export function combine(checks: readonly Check[], decisions: readonly Decision[], settler?: Settler<Policy>): CombinedDecision {
  const allowed = passesAll(checks, decisions);
  const all = new Array<Decision>(checks.length);
  let worst: Decision | undefined;
  for (let i = 0; i < checks.length; i++) {
    const check = checks[i] as Check;
    let decision = decisions[i] as Decision;
    if (settler !== undefined && allowed && decision.allowed && check.dryRun !== true)
      decision = withCharge(decision, check.limit, check.key, settler);
    else decision = !allowed && decision.delayMs > 0 ? copyWith(decision, { delayMs: 0 }) : chargeable(decision);
    all[i] = decision;
    if (check.shadow !== true && (worst === undefined || moreRestrictive(decision, worst))) worst = decision;
  }
  linkAll(all);
  return { allowed, decision: worst ?? mostRestrictive(all), all };
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

/** The wait that a client is told, in milliseconds. A slot may be given back at any moment, so a client may ask again in a second. */
export function shownWaitMs({ retryAfterMs, policy }: Decision): number {
  return policy.algorithm === "concurrency" && retryAfterMs !== Number.POSITIVE_INFINITY ? Math.min(retryAfterMs, 1000) : retryAfterMs;
}

/** Whether `a` leaves the client less room than `b`. */
export function moreRestrictive(a: Decision, b: Decision): boolean {
  if (a.allowed !== b.allowed) return b.allowed;
  if (!a.allowed) return shownWaitMs(a) > shownWaitMs(b);
  return a.remaining / a.limit < b.remaining / b.limit;
}
