import { restated } from "./charge.js";
import { charged, owned } from "./charge-record.js";
import { type CombinedDecision, type Decision, mostRestrictive } from "./decision.js";
import type { Limit } from "./limit.js";
import type { Check, Mode, Store } from "./store.js";

/** Whether a request passes several limits: each of them allows it. Shadow limits reject nothing. */
export function passesAll(checks: readonly Pick<Check, "shadow">[], decisions: readonly Pick<Decision, "allowed">[]): boolean {
  for (let i = 0; i < checks.length; i++) {
    if (checks[i]?.shadow !== true && decisions[i]?.allowed !== true) return false;
  }
  return true;
}

/**
 * Decides one check. With `commit` it charges an allowed request, and logs a rejected one if the policy has `countRejected`. Without
 * `commit` it changes nothing.
 */
export type DecideOne = (limit: Limit, key: string, cost: number, nowMs: number, commit: boolean) => Decision;

/**
 * For synchronous stores: implements `Store.consumeAll`. If the request passes, every limit that allows it is charged, else none.
 * Look-only limits are never charged.
 */
export function decideAll(checks: readonly Check[], nowMs: number, decide: DecideOne): Decision[] {
  const decisions: Decision[] = [];
  let passes = true;
  let uncommitted = checks.length;
  for (let i = 0; i < checks.length; i++) {
    const { limit, key, cost, shadow, look } = checks[i] as Check;
    // If all others pass, the last check alone decides, so it is committed at once.
    const isDecisive = i === checks.length - 1 && passes && look !== true;
    const decision = decide(limit, key, cost, nowMs, isDecisive);
    decisions.push(decision);
    if (isDecisive) uncommitted--;
    if (shadow !== true && !decision.allowed) passes = false;
  }
  for (let i = 0; i < uncommitted; i++) {
    const { limit, key, cost, look } = checks[i] as Check;
    // A rejection is committed too: a log may count it.
    if (look !== true && (passes || decisions[i]?.allowed !== true)) decisions[i] = decide(limit, key, cost, nowMs, true);
  }
  return decisions;
}

/** Whether one of several checks has charged its limit. @param passes whether the request passes all of them. */
export function isCharged({ look }: Check, decision: Decision, passes: boolean): boolean {
  return passes && decision.allowed && look !== true;
}

/** The decisions of several checks. Those that charged a limit carry their charge. */
export function chargedAll(checks: readonly Check[], decisions: readonly Decision[], guard: Store<Mode>): Decision[] {
  const passes = passesAll(checks, decisions);
  return decisions.map((decision, i) => {
    const check = checks[i] as Check;
    return isCharged(check, decision, passes) ? charged(decision, check.limit, check.key, guard) : owned(decision);
  });
}

/**
 * The overall decision of several checks in one atomic step. Shadow checks reject nothing, and are reported only if there are no others. A
 * rejected request was not charged, so no decision has a delay.
 */
export function combine(checks: readonly Check[], decisions: readonly Decision[]): CombinedDecision {
  const enforced = decisions.filter((_, i) => checks[i]?.shadow !== true);
  const allowed = passesAll(checks, decisions);
  if (allowed) return { allowed, decision: mostRestrictive(enforced.length > 0 ? enforced : decisions), all: decisions };
  const all = decisions.map((decision) => (decision.allowed && decision.delayMs > 0 ? restated(decision, { delayMs: 0 }) : decision));
  return { allowed, decision: mostRestrictive(all.filter((_, i) => checks[i]?.shadow !== true)), all };
}
