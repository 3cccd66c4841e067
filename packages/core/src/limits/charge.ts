import type { Cells } from "../algorithms/algorithm.js";
import type { Policy } from "../algorithms/registry.js";
import type { Mode, Store } from "../stores/store.js";
import type { LocalUsage } from "../stores/unreported-usage.js";
import type { Decision } from "./decision.js";
import type { Limit } from "./limit.js";

/** What an allowed decision took, as a store settles it. */
export interface Charge {
  /** The units that were charged. */
  readonly cost: number;
  /** The time that the charge counts from, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The store's number of the state that was charged, as it gave it to `inState`. */
  readonly state: number | undefined;
  /** Where a receipt was issued for the charge: the store redeems it once, and changes nothing from `untilMs` on, by its own clock. */
  readonly receipt?: ReceiptMark | undefined;
}

export interface ReceiptMark {
  /** Letters, digits, `-` and `_`: unique for each charge. */
  readonly id: string;
  readonly untilMs: number;
}

/** `undefined` while the charge may be settled; `fault` if the store failed, so that it may have been settled or not. */
type Fate = undefined | "settled" | { readonly fault: unknown };

/** The one record of a charge. Only its decision leads to it, so a copy or an edit of the decision has no charge. */
export class ChargeRecord implements Charge {
  readonly cost: number;
  readonly atMs: number;
  readonly state: number | undefined;
  readonly limit: Limit;
  readonly key: string;
  /** The guard that decided: it settles too. */
  guard: Store<Mode> | undefined;
  /** Where a fallback charged: the fallback's account of the key. */
  readonly localUsage: LocalUsage | undefined;
  fate: Fate = undefined;
  /** The mark of its receipt, once one was issued; and as the store is handed it. */
  issued: ReceiptMark | undefined = undefined;
  receipt: ReceiptMark | undefined = undefined;

  constructor(
    cost: number,
    atMs: number,
    state: number | undefined,
    limit: Limit,
    key: string,
    guard: Store<Mode> | undefined,
    localUsage: LocalUsage | undefined,
  ) {
    this.cost = cost;
    this.atMs = atMs;
    this.state = state;
    this.limit = limit;
    this.key = key;
    this.guard = guard;
    this.localUsage = localUsage;
  }
}

/** Private fields tell a decision from its copies: a spread, JSON and structuredClone leave them behind. */
export class MadeDecision implements Decision {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly cost: number;
  readonly atMs: number;
  readonly name: string;
  readonly policy: Policy;
  readonly degraded: boolean;
  // Private copies of what was charged: editing the decision changes nothing.
  readonly #cost: number;
  readonly #atMs: number;
  #state: number | undefined;
  #limit: Limit | undefined;
  #guard: Store<Mode> | undefined;
  /** The key that was charged; or the record, which is made on demand, because most decisions are never settled. */
  #charged: string | ChargeRecord | undefined;

  static owned(made: Decision): MadeDecision {
    return #charged in made ? made : MadeDecision.restated(made, {});
  }

  static restated(made: Decision, changes: Partial<Decision>): MadeDecision {
    const all = { ...made, ...changes };
    const copy = new MadeDecision(
      all.allowed,
      all.limit,
      all.remaining,
      all.retryAfterMs,
      all.resetAfterMs,
      all.delayMs,
      all.cost,
      all.atMs,
      all.name,
      all.policy,
      all.degraded,
    );
    if (#charged in made) copy.#state = made.#state;
    return copy;
  }

  static inState(made: Decision, state: number): Decision {
    const own = #charged in made ? made : MadeDecision.restated(made, {});
    own.#state = state;
    return own;
  }

  static charged(made: Decision, limit: Limit, key: string, guard?: Store<Mode>, localUsage?: LocalUsage): Decision {
    // One made by another copy of this package, or by hand, or handed out twice.
    const own = #charged in made && made.#charged === undefined ? made : MadeDecision.restated(made, {});
    own.#limit = limit;
    own.#guard = guard;
    own.#charged = key;
    if (localUsage !== undefined) MadeDecision.#recordOf(own, localUsage);
    return own;
  }

  static chargeOf(given: unknown): ChargeRecord | undefined | "copy" {
    return typeof given === "object" && given !== null && #charged in given ? MadeDecision.#recordOf(given) : "copy";
  }

  static asCharge(made: Decision): Charge {
    return { cost: made.cost, atMs: made.atMs, state: #charged in made ? made.#state : undefined };
  }

  // Static: a private method of each decision would take a field of each.
  static #recordOf(made: MadeDecision, localUsage?: LocalUsage): ChargeRecord | undefined {
    const charged = made.#charged;
    if (typeof charged !== "string") return charged;
    const record = new ChargeRecord(made.#cost, made.#atMs, made.#state, made.#limit as Limit, charged, made.#guard, localUsage);
    made.#charged = record;
    return record;
  }

  constructor(
    allowed: boolean,
    limit: number,
    remaining: number,
    retryAfterMs: number,
    resetAfterMs: number,
    delayMs: number,
    cost: number,
    atMs: number,
    name: string,
    policy: Policy,
    degraded: boolean,
  ) {
    this.allowed = allowed;
    this.limit = limit;
    this.remaining = remaining;
    this.retryAfterMs = retryAfterMs;
    this.resetAfterMs = resetAfterMs;
    this.delayMs = delayMs;
    this.cost = cost;
    this.atMs = atMs;
    this.name = name;
    this.policy = policy;
    this.degraded = degraded;
    this.#cost = cost;
    this.#atMs = atMs;
  }
}

// The functions that read the private fields are static methods, and not wrapped: each decision runs them.

/** The same decision with other values, in the same state. It has no charge. */
export const restated: (made: Decision, changes: Partial<Decision>) => Decision = MadeDecision.restated;

/**
 * For stores: tells which state a decision was made in, by a number that the state keeps until it is forgotten, and that no
 * other state of the store ever has. The store is handed it with the charge that it settles.
 */
export const inState: (made: Decision, state: number) => Decision = MadeDecision.inState;

/** A decision of ours: a store may have made its own object. */
export const owned: (made: Decision) => MadeDecision = MadeDecision.owned;

/** A decision that has charged a key of a limit, with its charge. */
export const charged: (made: Decision, limit: Limit, key: string, guard?: Store<Mode>, localUsage?: LocalUsage) => Decision =
  MadeDecision.charged;

/** What a decision charged; undefined if it charged nothing, `"copy"` if it is no decision of ours. */
export const chargeOf: (given: unknown) => ChargeRecord | undefined | "copy" = MadeDecision.chargeOf;

/** For callers of stores: the charge of a decision that a store itself has answered. */
export const asCharge: (made: Decision) => Charge = MadeDecision.asCharge;

/**
 * For stores: whether a decision that was just committed has begun its state. The state that the cells held before may have ended,
 * or have become void by a clock that stepped back; then the state of the new charge needs another number.
 */
export function beganState(limit: Limit, cells: Cells, at: number, nowMs: number, made: Decision): boolean {
  const { algorithm, policy } = limit;
  // Nearly always enough, and quick: more than this charge is missing.
  if (made.remaining !== Math.max(made.limit - made.cost, 0)) return false;
  if (!made.allowed && algorithm.countsRejected?.(policy) !== true) return false;
  const size = algorithm.size(policy, noCells, 0);
  const begun = size <= scratch.length ? scratch : new Float64Array(size);
  algorithm.decide(limit, begun, 0, nowMs, made.cost, true);
  let began = true;
  for (let i = 0; i < size; i++) {
    if (cells[at + i] !== begun[i]) began = false;
    begun[i] = 0;
  }
  return began;
}

/** Zeros, on which a state is begun: most take no more. */
const scratch: Cells = new Float64Array(16);

/** No cells at all reads as no state. */
const noCells: Cells = new Float64Array(3);

/**
 * For stores: settles a charge in a state, and answers as `Store.settle` does. A charge of another state gives nothing back, and what
 * it owes in addition is owed only where that does not depend on the charge: in buckets.
 * @param state the number of the state in the cells; undefined where they hold no state.
 */
export function settleIn(
  { algorithm, policy }: Limit,
  cells: Cells,
  at: number,
  nowMs: number,
  charge: Charge,
  cost: number,
  state: number | undefined,
): number {
  const { receipt } = charge;
  if (receipt !== undefined && nowMs >= receipt.untilMs) return 0;
  const counts = state !== undefined && charge.state === state;
  if (!counts && cost <= charge.cost) return 0;
  return algorithm.settle(policy, cells, at, nowMs, counts ? charge.atMs : Number.NEGATIVE_INFINITY, charge.cost, cost);
}
