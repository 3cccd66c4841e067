import type { Decision } from "./decision.js";
import { FloodgateError, shown } from "./errors.js";
import type { EventListener } from "./events.js";
import { StoreGuard } from "./failure/guard.js";
import type { Limit } from "./limit.js";
import { andThen, type Mode, type Store } from "./store.js";

/** Decisions that have nothing to give back (any more): looks, parts of a rejected whole, and those refunded before. */
const settled = new WeakSet<Decision>();

/** Marks a decision that took nothing although it allows. */
export function notCharged(decision: Decision): Decision {
  if (decision.allowed) settled.add(decision);
  return decision;
}

/** Gives back what a decision charged, once, and tells so. Answers the units given back. */
export function giveBack(
  store: Store<Mode>,
  limit: Limit,
  key: string,
  decision: Decision,
  onEvent: EventListener | undefined,
): number | PromiseLike<number> {
  if (decision.name !== limit.name || decision.policy.stateKind !== limit.policy.stateKind) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `A refund to ${shown(limit.name)} takes a decision of that limiter, but was given one of ${shown(decision.name)}.`,
    );
  }
  // A store without a guard has not made a degraded one.
  if (!decision.allowed || settled.has(decision) || (decision.degraded && !(store instanceof StoreGuard))) return 0;
  settled.add(decision);
  return andThen<number, number>(store.refund(limit, key, decision), (units) => {
    if (units > 0) onEvent?.({ type: "refunded", name: limit.name, key, units, decision });
    return units;
  });
}
