import { hasCharge } from "../algorithms/decision.js";
import type { CombinedDecision, Decision } from "../decide/decision.js";
import { steadyMs } from "../support/runtime.js";
import type { DecisionEvent, EventListener } from "./events.js";
import { hearsAllowed } from "./listeners.js";

/**
 * Emits the events of decisions that were made in one step. A limit that allowed has no event if another one rejected: the request did not
 * pass it.
 * @param listener undefined if nobody listens.
 * @param askedMs when the store was asked, by `steadyMs`.
 */
export function emitDecisions(
  listener: EventListener | undefined,
  checks: readonly { readonly key: string; readonly shadow?: boolean }[],
  { allowed, all }: Pick<CombinedDecision, "allowed" | "all">,
  askedMs: number,
): void {
  if (listener === undefined) return;
  if (allowed && !hearsAllowed(listener) && all.every((decision) => decision.allowed)) return;
  const storeMs = steadyMs() - askedMs;
  checks.forEach(({ key, shadow = false }, i) => {
    const decision = all[i] as Decision;
    if (allowed || !decision.allowed) listener(eventOf(key, decision, shadow, storeMs));
  });
}

/** The event of one decision. */
export function eventOf(key: string, decision: Decision, shadow: boolean, storeMs: number): DecisionEvent {
  const charged = hasCharge(decision) ? decision.cost : 0;
  return { type: eventType(decision, shadow), name: decision.name, key, decision, shadow, charged, storeMs };
}

function eventType(decision: Decision, shadow: boolean): DecisionEvent["type"] {
  if (decision.degraded) return "degraded";
  if (!decision.allowed) return shadow ? "shadow-limited" : "limited";
  return decision.delayMs > 0 ? "delayed" : "allowed";
}
