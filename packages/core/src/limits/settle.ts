import { chargeOf } from "../algorithms/decision.js";
import { hasSlots, type Policy } from "../algorithms/registry.js";
import type { ChargeRecord, Decision, Limit } from "../decide/decision.js";
import type { Guard } from "../decide/guard.js";
import { isZero } from "../decide/zero-limits.js";
import type { EventListener } from "../events/events.js";
import { activeListener } from "../events/listeners.js";
import { FloodgateError, shown } from "../support/errors.js";
import { wholeOf } from "../support/options.js";
import { andThen, attempt, type Promised } from "../support/promises.js";

interface Settled {
  readonly name: string;
  readonly key: string;
  /** Undefined if a receipt was used. */
  readonly decision: Decision | undefined;
}

/**
 * Emits the event of a settlement to `cost`, or without one of a refund. Returns the units charged in addition, or given back.
 * @param change the result of the store's `settle`.
 */
export function emitChange(
  change: Promised<number>,
  settled: Settled,
  cost: number | undefined,
  onEvent: EventListener | undefined,
): Promised<number> {
  return andThen<number, number>(change, (charged) => {
    const units = cost === undefined ? 0 - charged : charged;
    if (cost !== undefined && units !== 0) activeListener(onEvent)?.({ type: "settled", ...settled, cost, units });
    if (cost === undefined && units > 0) activeListener(onEvent)?.({ type: "refunded", ...settled, units });
    return units;
  });
}

/** Records usage that has happened, and emits its event. Returns the units that were charged. */
export function recordUsage(
  { guard, onEvent }: { readonly guard: Guard; readonly onEvent: EventListener | undefined },
  limit: Limit,
  key: string,
  cost: number,
): Promised<number> {
  return andThen<number, number>(cost === 0 || isZero(limit) ? 0 : guard.charge(limit, key, cost), (units) => {
    if (units > 0) activeListener(onEvent)?.({ type: "charged", name: limit.name, key, cost, units });
    return units;
  });
}

/**
 * Settles the charge of a decision to its real cost (0: a refund), once. Returns the units charged in addition.
 * @param limit the limit, or a rule's name: then each charge is settled under its own limit.
 */
export function settleDecision(guard: Guard, limit: Limit | string, key: string, decision: Decision, cost: number): Promised<number> {
  const charge = checkCharge(guard, limit, decision);
  if (charge !== undefined && charge.key !== key) {
    throw foreign(nameOf(limit), "was given another key than the decision's", "Pass the key that was consumed");
  }
  return settleCharge(guard, limit, charge, cost);
}

function nameOf(limit: Limit | string): string {
  return typeof limit === "string" ? limit : limit.name;
}

/** Settles a charge of this limit and store. Returns 0 if it was settled before, or if nothing was charged. */
export function settleCharge(guard: Guard, limit: Limit | string, charge: ChargeRecord | undefined, cost: number): Promised<number> {
  if (charge === undefined || charge.fate === "settled") return guard.mode === "sync" ? 0 : Promise.resolve(0);
  if (charge.fate !== undefined) {
    const fault = new FloodgateError(
      "FLOODGATE_STORE_FAULT",
      `A refund or settlement of this decision of ${shown(nameOf(limit))} has failed, but the store may have made it, so it is not retried. Continue without it.`,
      { cause: charge.fate.fault },
    );
    if (guard.mode === "sync") throw fault;
    return Promise.reject(fault);
  }
  charge.fate = "settled";
  const renewing = charge.slot?.end();
  // A slot is given back, whatever it has cost.
  const real = hasSlots(charge.limit.policy) ? 0 : cost;
  const failed = (fault: unknown): never => {
    charge.fate = { fault };
    throw fault;
  };
  const settle = (): Promised<number> =>
    (charge.settler ?? guard).settle(typeof limit === "string" ? charge.limit : limit, charge.key, charge, real);
  return attempt(() => (renewing === undefined ? settle() : renewing.then(settle, settle)), failed);
}

/**
 * The charge of a decision; undefined if it charged nothing.
 * @throws FloodgateError `FLOODGATE_FOREIGN_CHARGE` for a copy, and for a decision of another limiter or store.
 */
export function checkCharge(guard: Guard, limit: Limit | string, decision: Decision): ChargeRecord | undefined {
  const charge = chargeOf<Policy>(decision);
  const asked = nameOf(limit);
  if (charge === "copy") {
    throw foreign(
      asked,
      `was given ${shown(decision)}, which is not an original decision but a copy or another value`,
      "Pass the object that consume returned. To refund or settle in another process, pass a receipt: limiter.receipt(decision)",
    );
  }
  if (charge === undefined) return undefined;
  const { name, policy } = charge.limit;
  if (name !== asked) throw foreign(asked, `was given a decision of ${shown(name)}`);
  if (typeof limit !== "string" && policy.stateKind !== limit.policy.stateKind) {
    throw foreign(asked, `was given a decision of another policy (${policy.stateKind})`);
  }
  if (charge.settler !== undefined && charge.settler.scope !== guard.scope) {
    throw foreign(asked, "was given a decision of a limiter of that name on another store");
  }
  return charge;
}

function foreign(name: string, problem: string, advice = "Call the limiter that decided"): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_FOREIGN_CHARGE",
    `${shown(name)} refunds and settles its own decisions, each for the key that it charged, but ${problem}. ${advice}.`,
  );
}

/** @throws FloodgateError `FLOODGATE_INVALID_COST` unless it is a whole number of at least `least`: 1 for a request, 0 for its real cost. */
export function checkCost(cost: unknown, least: 0 | 1 = 1): number {
  if (typeof cost === "number" && Number.isSafeInteger(cost) && cost >= least) return cost;
  const [what, write] =
    least === 1
      ? ["cost", "Write { cost: 1 }. To read without taking units, use peek."]
      : ["real cost", "Write 1200, for example; Math.ceil rounds up."];
  throw new FloodgateError("FLOODGATE_INVALID_COST", `A ${what} must be ${wholeOf(least, cost)}, but was ${shown(cost)}. ${write}`);
}
