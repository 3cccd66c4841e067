import type { DecisionUnder, Limit as LimitUnder, Settler } from "../algorithms/algorithm.js";
import { asOwn, type ChargeRecord as ChargeRecordUnder, charged, copyWith, join } from "../algorithms/decision.js";
import { algorithmOf, type Policy } from "../algorithms/registry.js";
import { conflict, wrongOption } from "../support/errors.js";

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

/**
 * Why units of a policy can never be leased; undefined if they can. A queue gives each request its own delay, and a log with `countRejected`
 * must see each rejection.
 */
export function whyNoLease(policy: Policy): string | undefined {
  const { delays, countsRejected } = algorithmOf(policy);
  if (policy.holdMs !== undefined) return "units that come back are to be had by every process at once";
  if (delays) return "a leakyBucket gives each request its place in the queue";
  return countsRejected?.(policy) ? "`countRejected` must see each rejected request" : undefined;
}

/** Checks the option `lease` of a limit. @throws FloodgateError if it is not a boolean, or is true for a policy whose units cannot be leased. */
export function checkLease(where: string, lease: unknown, limits: readonly Limit[]): void {
  if (lease === undefined || lease === false) return;
  if (lease !== true) {
    const write = "lease: true. How long a lease lives is an option of the store: redisStore(redis, { lease: { lifeMs: 200 } })";
    throw wrongOption(where, "lease", "true or false", lease, write);
  }
  const why = limits.map(({ policy }) => whyNoLease(policy)).find((reason) => reason !== undefined);
  if (why === undefined) return;
  throw conflict(`${where}: \`lease: true\` takes units ahead of requests, but ${why}. Leave \`lease\` out, or use another policy.`, [
    "lease",
  ]);
}

/** Names appear in headers, Redis keys and metrics, so they must be printable ASCII. */
export function checkName(where: string, name: unknown): string {
  if (typeof name === "string" && /^[\x20-\x7e]{1,128}$/.test(name)) return name;
  const must = "1 to 128 printable ASCII characters (it appears in the response headers)";
  throw wrongOption(where, "name", must, name, 'name: "api"', []);
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
      decision = charged(decision, check.limit, check.key, settler);
    else decision = !allowed && decision.delayMs > 0 ? copyWith(decision, { delayMs: 0 }) : asOwn(decision);
    all[i] = decision;
    if (check.shadow !== true && (worst === undefined || moreRestrictive(decision, worst))) worst = decision;
  }
  join(all);
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

/**
 * Decides one check. With `commit` it charges an allowed request, and logs a rejected one if the policy has `countRejected`. Without
 * `commit` it changes nothing.
 */
export type DecideOne = (limit: Limit, key: string, cost: number, nowMs: number, commit: boolean) => Decision;

/**
 * For synchronous stores: implements `Store.consumeAll`. If the request passes, every limit that allows it is charged, else none.
 * `dryRun` checks are never charged.
 */
export function decideAll(checks: readonly Check[], nowMs: number, decide: DecideOne): Decision[] {
  const decisions: Decision[] = [];
  let passes = true;
  let uncommitted = checks.length;
  for (let i = 0; i < checks.length; i++) {
    const { limit, key, cost, shadow, dryRun } = checks[i] as Check;
    // If all others pass, the last check alone decides, so it is committed at once.
    const isDecisive = i === checks.length - 1 && passes && dryRun !== true;
    const decision = decide(limit, key, cost, nowMs, isDecisive);
    decisions.push(decision);
    if (isDecisive) uncommitted--;
    if (shadow !== true && !decision.allowed) passes = false;
  }
  for (let i = 0; i < uncommitted; i++) {
    const { limit, key, cost, dryRun } = checks[i] as Check;
    // A rejection is committed too: a log may count it.
    if (dryRun !== true && (passes || decisions[i]?.allowed !== true)) decisions[i] = decide(limit, key, cost, nowMs, true);
  }
  return decisions;
}
