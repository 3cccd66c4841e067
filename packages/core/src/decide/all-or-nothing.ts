import type { Decision } from "./decision.js";
import type { Check, Limit } from "./limit.js";

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
