import type { Cells } from "../algorithms/algorithm.js";
import type { Policy } from "../algorithms/registry.js";
import type { Mode, Store } from "../stores/store.js";
import type { LocalUsage } from "../stores/unreported-usage.js";
import type { Decision } from "./decision.js";
import type { Limit } from "./limit.js";

/** What an allowed decision charged. A store settles it. */
export interface Charge {
  /** The units that were charged. */
  readonly cost: number;
  /** The time that the charge counts from, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The number of the charged state, as the store passed it to `inState`. */
  readonly state: number | undefined;
  /** The receipt that was issued for the charge, if any. The store redeems it once, and not from `untilMs` (store time) on. */
  readonly receipt?: ReceiptMark | undefined;
}

export interface ReceiptMark {
  /** Letters, digits, `-` and `_`: unique for each charge. */
  readonly id: string;
  readonly untilMs: number;
}

/** `undefined` while the charge can be settled. With `fault` the store failed, and may or may not have settled it. */
type Fate = undefined | "settled" | { readonly fault: unknown };

/** The only record of a charge. Only its own decision object leads to it, so copies of the decision have no charge. */
export class ChargeRecord implements Charge {
  readonly cost: number;
  readonly atMs: number;
  readonly state: number | undefined;
  readonly limit: Limit;
  readonly key: string;
  /** The guard that decided; it also settles. */
  guard: Store<Mode> | undefined;
  /** Set if a fallback charged: the fallback's usage of the key. */
  readonly localUsage: LocalUsage | undefined;
  fate: Fate = undefined;
  /** `issued`: the mark of the receipt, once one was issued. `receipt`: the same, once the store must redeem by it. */
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

/** Private fields distinguish a decision from its copies: a spread, JSON and structuredClone do not copy them. */
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
  // Private copies, so that editing the decision does not change its charge.
  readonly #cost: number;
  readonly #atMs: number;
  #state: number | undefined;
  #limit: Limit | undefined;
  #guard: Store<Mode> | undefined;
  /** The charged key, or the record. The record is made on demand, because most decisions are never settled. */
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
    // Copy a decision that another copy of this package or a store made by hand, or that was returned before.
    const own = #charged in made && made.#charged === undefined ? made : MadeDecision.restated(made, {});
    own.#limit = limit;
    own.#guard = guard;
    own.#charged = key;
    if (localUsage !== undefined) MadeDecision.#recordOf(own, localUsage);
    return own;
  }

  static chargeOf(value: unknown): ChargeRecord | undefined | "copy" {
    return typeof value === "object" && value !== null && #charged in value ? MadeDecision.#recordOf(value) : "copy";
  }

  static asCharge(made: Decision): Charge {
    return { cost: made.cost, atMs: made.atMs, state: #charged in made ? made.#state : undefined };
  }

  // Static, because private methods would add a field to each decision.
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

// Direct aliases of static methods, without wrappers: they run for every decision.

/** A copy of the decision with other values, in the same state. It has no charge. */
export const restated: (made: Decision, changes: Partial<Decision>) => Decision = MadeDecision.restated;

/**
 * For stores: attaches the number of the state that a decision was made in. The number must stay the same for the life of the state, and
 * no other state of the store may ever have it. `Store.settle` receives it with the charge.
 */
export const inState: (made: Decision, state: number) => Decision = MadeDecision.inState;

/** The decision as a `MadeDecision`; copies it if the store made its own object. */
export const owned: (made: Decision) => MadeDecision = MadeDecision.owned;

/** Attaches a charge of a key under a limit to a decision. */
export const charged: (made: Decision, limit: Limit, key: string, guard?: Store<Mode>, localUsage?: LocalUsage) => Decision =
  MadeDecision.charged;

/** The charge of a decision; undefined if it charged nothing, `"copy"` if the value is not an original decision. */
export const chargeOf: (value: unknown) => ChargeRecord | undefined | "copy" = MadeDecision.chargeOf;

/** For direct callers of stores: the charge of a store's own decision. */
export const asCharge: (made: Decision) => Charge = MadeDecision.asCharge;

/**
 * For stores: whether a decision that was just committed began a new state, because the old one had ended or a clock's step had made
 * it void. Then the new state needs another number.
 */
export function beganState(limit: Limit, cells: Cells, at: number, nowMs: number, made: Decision): boolean {
  const { algorithm, policy } = limit;
  // Fast path: more than this charge is missing, so the state is older.
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

/** Zeros to begin a state on; enough for most algorithms. */
const scratch: Cells = new Float64Array(16);

/** Zeros, which read as no state. */
const noCells: Cells = new Float64Array(3);

/**
 * For stores: implements `Store.settle` on cells. A charge to an earlier state refunds nothing; only a bucket still charges a higher
 * cost.
 * @param state the number of the state in the cells; undefined if there is none.
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
