import type { Decision } from "./decision.js";
import { FloodgateError, shown } from "./errors.js";
import type { EventListener } from "./events.js";
import { guardOf } from "./failure/guard.js";
import type { Limit } from "./limit.js";
import { andThen, isPromise, type Mode, type Store } from "./store.js";

/** Decisions of which nothing can be changed (any more): looks, parts of a rejected whole, and those refunded or settled before. */
const spent = new WeakSet<Decision>();

/** Decisions of which a change has failed, so that nobody knows whether it was made, and what with. */
const doubtful = new WeakMap<Decision, unknown>();

/** Marks a decision that took nothing although it allows. */
export function notCharged(decision: Decision): Decision {
  if (decision.allowed) spent.add(decision);
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
  return andThen<number, number>(settleOnce(store, limit, key, decision, 0), (change) => {
    const units = 0 - change;
    if (units > 0) onEvent?.({ type: "refunded", name: limit.name, key, units, decision });
    return units;
  });
}

/**
 * Changes what a decision charged to the real cost, once, and tells so. Answers the units charged in addition, or below 0 given back.
 * @throws FloodgateError `FLOODGATE_INVALID_COST` unless the cost is a whole number of at least 0.
 */
export function settle(
  store: Store<Mode>,
  limit: Limit,
  key: string,
  decision: Decision,
  cost: number,
  onEvent: EventListener | undefined,
): number | PromiseLike<number> {
  return andThen<number, number>(settleOnce(store, limit, key, decision, checkRealCost(cost)), (units) => {
    if (units !== 0) onEvent?.({ type: "settled", name: limit.name, key, cost, units, decision });
    return units;
  });
}

function settleOnce(store: Store<Mode>, limit: Limit, key: string, decision: Decision, cost: number): number | PromiseLike<number> {
  if (decision.name !== limit.name || decision.policy.stateKind !== limit.policy.stateKind) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${shown(limit.name)} refunds and settles its own decisions, but was given one of ${shown(decision.name)}. Call the limiter that decided.`,
    );
  }
  if (doubtful.has(decision)) {
    const fault = new FloodgateError(
      "FLOODGATE_STORE_FAULT",
      `A refund or settlement of this decision of ${shown(limit.name)} has failed, and the store may have made it all the same. It is not made again, for it might count twice. Go on without it.`,
      { cause: doubtful.get(decision) },
    );
    if (store.mode === "sync") throw fault;
    return Promise.reject(fault);
  }
  // What has decided in the store's stead has charged for it too.
  const charged = decision.degraded ? guardOf(decision) : store;
  if (!decision.allowed || spent.has(decision) || charged === undefined) return store.mode === "sync" ? 0 : Promise.resolve(0);
  spent.add(decision);
  const failed = (error: unknown): never => {
    doubtful.set(decision, error);
    throw error;
  };
  try {
    const answer = charged.settle(limit, key, decision, cost);
    return isPromise(answer) ? answer.then(undefined, failed) : answer;
  } catch (error) {
    return failed(error);
  }
}

function checkRealCost(cost: unknown): number {
  if (typeof cost === "number" && Number.isSafeInteger(cost) && cost >= 0) return cost;
  throw new FloodgateError(
    "FLOODGATE_INVALID_COST",
    `A real cost must be a whole number of at least 0, but was ${shown(cost)}. Write 1200, say; Math.ceil rounds up.`,
  );
}
