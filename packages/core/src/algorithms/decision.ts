import type { Charge, DecisionUnder, KeyBlock, Limit, NamedPolicy, PolicyBase, ReceiptMark, Settler } from "./algorithm.js";

/** What an algorithm finds out about a request. Durations are whole milliseconds: see `DecisionUnder`. */
export type Finding = Pick<
  DecisionUnder<unknown>,
  "allowed" | "remaining" | "retryAfterMs" | "resetAfterMs" | "delayMs" | "atMs" | "heldUntilMs"
>;

/** `undefined` while the charge can be settled. With `fault` the store failed, and may or may not have settled it. */
type Fate = undefined | "settled" | { readonly fault: unknown };

/** The only record of a charge. Only its own decision object leads to it, so copies of the decision have no charge. */
export class ChargeRecord<P = unknown> implements Charge {
  readonly cost: number;
  readonly heldUntilMs: number | undefined;
  /** A renewal of slots changes the time and the state. */
  atMs: number;
  state: number | undefined;
  readonly limit: Limit<P>;
  readonly key: string;
  /** Renews its slots until it is settled, if they are renewed. `end` stops that, and returns the renewal in flight. */
  slot: { end(): PromiseLike<unknown> | undefined } | undefined = undefined;
  /** Settles it. Undefined if a receipt led to it: then the redeeming limiter does. */
  readonly settler: Settler<P> | undefined;
  fate: Fate = undefined;
  /** `issued`: the mark of the receipt, once one was issued. `receipt`: the same, once the store must redeem by it. */
  issued: ReceiptMark | undefined = undefined;
  receipt: ReceiptMark | undefined = undefined;

  constructor(charge: Charge, limit: Limit<P>, key: string, settler: Settler<P> | undefined) {
    this.cost = charge.cost;
    this.atMs = charge.atMs;
    this.state = charge.state;
    this.heldUntilMs = charge.heldUntilMs;
    this.limit = limit;
    this.key = key;
    this.settler = settler;
  }
}

/**
 * Every decision, so that V8 gives all of them the same shape. It has no charge until `withCharge`. Private fields distinguish it from its
 * copies: a spread, JSON and structuredClone do not copy them.
 */
export class MadeDecision<P extends PolicyBase> implements DecisionUnder<P> {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly cost: number;
  readonly atMs: number;
  readonly name: string;
  readonly policy: P;
  readonly degraded: boolean;
  // Rare, so only decisions that have them have these properties.
  readonly blocked?: KeyBlock | undefined;
  readonly degradedBy?: DecisionUnder<P>["degradedBy"];
  // Private copies, so that editing the decision does not change its charge.
  readonly #cost: number;
  readonly #atMs: number;
  #state: number | undefined;
  readonly #heldUntilMs: number | undefined;
  #limit: Limit<P> | undefined;
  #settler: Settler<P> | undefined;
  /** The charged key, or the record of the charge. The record is made on demand, because most decisions are never settled. */
  #charged: string | ChargeRecord<P> | undefined;
  #all: readonly DecisionUnder<P>[] | undefined;

  // On the prototype, so that a decision needs no room for them, and copies of a decision do not have them.

  /** Another copy of this package reads it: that of a store which depends on another version. */
  get stateNumber(): number | undefined {
    return this.#state;
  }

  get used(): number {
    return this.limit - this.remaining;
  }

  get heldUntilMs(): number | undefined {
    return this.#heldUntilMs;
  }

  get decisions(): readonly DecisionUnder<P>[] {
    return this.#all ?? [this];
  }

  static linkAll<P extends PolicyBase>(all: readonly DecisionUnder<P>[]): void {
    for (const made of all) if (#charged in made) (made as MadeDecision<P>).#all = all;
  }

  static chargeable<P extends PolicyBase>(made: DecisionUnder<P>): MadeDecision<P> {
    return #charged in made ? (made as MadeDecision<P>) : MadeDecision.copyWith(made, {});
  }

  static copyWith<P extends PolicyBase>(made: DecisionUnder<P>, changes: Partial<DecisionUnder<P>>): MadeDecision<P> {
    // In Node 20, an object that is spread and gets more fields takes 20 times as long.
    const all = Object.assign({ heldUntilMs: made.heldUntilMs }, made, changes);
    const copy = new MadeDecision(all, all.cost, all, all.limit, all.degraded);
    copy.#state = (made as Partial<MadeDecision<P>>).stateNumber;
    const { blocked, degradedBy } = all;
    if (blocked !== undefined) Object.assign(copy, { blocked });
    if (degradedBy !== undefined) Object.assign(copy, { degradedBy });
    return copy;
  }

  static inState<P extends PolicyBase>(made: DecisionUnder<P>, state: number): MadeDecision<P> {
    // Not by `chargeable`: each decision in memory comes here.
    const own = #charged in made ? (made as MadeDecision<P>) : MadeDecision.copyWith(made, {});
    own.#state = state;
    return own;
  }

  static withCharge<P extends PolicyBase>(made: DecisionUnder<P>, limit: Limit<P>, key: string, settler: Settler<P>): MadeDecision<P> {
    // A store may return the same object again: each charge gets its own.
    const isFree = #charged in made && made.#charged === undefined;
    const own = isFree ? (made as MadeDecision<P>) : MadeDecision.copyWith(made, {});
    own.#limit = limit;
    own.#settler = settler;
    own.#charged = key;
    return own;
  }

  static hasCharge(value: object): boolean {
    return #charged in value && value.#charged !== undefined;
  }

  static chargeOf<P extends PolicyBase>(value: unknown): ChargeRecord<P> | undefined | "copy" {
    if (typeof value !== "object" || value === null || !(#charged in value)) return "copy";
    const made = value as unknown as MadeDecision<P>;
    const key = made.#charged;
    if (typeof key !== "string") return key;
    const charge = { cost: made.#cost, atMs: made.#atMs, state: made.#state, heldUntilMs: made.#heldUntilMs };
    made.#charged = new ChargeRecord(charge, made.#limit as Limit<P>, key, made.#settler);
    return made.#charged;
  }

  /** @param limit the largest cost that could ever pass. */
  constructor(
    named: NamedPolicy<P>,
    cost: number,
    { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, atMs, heldUntilMs }: Finding,
    limit: number = named.policy.quota,
    degraded = false,
  ) {
    this.allowed = allowed;
    this.limit = limit;
    this.remaining = remaining;
    this.retryAfterMs = retryAfterMs;
    this.resetAfterMs = resetAfterMs;
    this.delayMs = delayMs;
    this.cost = cost;
    this.atMs = atMs;
    this.name = named.name;
    this.policy = named.policy;
    this.degraded = degraded;
    this.#cost = cost;
    this.#atMs = atMs;
    this.#heldUntilMs = heldUntilMs;
  }
}

/** For stores: makes a decision under a limit. It has no charge yet. */
export function decision<P extends PolicyBase>(limit: NamedPolicy<P>, cost: number, finding: Finding): DecisionUnder<P> {
  return new MadeDecision(limit, cost, finding);
}

// Direct aliases of static methods, without wrappers: they run for every decision.

/** The decision as one that can have a charge; a copy if a store or another copy of this package made its own object. */
export const chargeable: typeof MadeDecision.chargeable = MadeDecision.chargeable;

/** Attaches a charge of a key under a limit to a decision. The settler settles it. */
export const withCharge: typeof MadeDecision.withCharge = MadeDecision.withCharge;

/** Lets each decision of one step list all of them: `decision.decisions`. */
export const linkAll: typeof MadeDecision.linkAll = MadeDecision.linkAll;

/** A copy of the decision with other values, in the same state. It has no charge. */
export const copyWith: typeof MadeDecision.copyWith = MadeDecision.copyWith;

/**
 * For stores: attaches the number of the state that a decision was made in. The number must stay the same for the life of the state, and
 * no other state of the store may ever have it. `Store.settle` receives it with the charge.
 */
export const inState: typeof MadeDecision.inState = MadeDecision.inState;

export const hasCharge: typeof MadeDecision.hasCharge = MadeDecision.hasCharge;

/** The charge of a decision; undefined if it charged nothing, `"copy"` if the value is not an original decision. */
export const chargeOf: typeof MadeDecision.chargeOf = MadeDecision.chargeOf;

/** For direct callers of stores: the charge of a store's own decision. */
export function asCharge<P>(made: DecisionUnder<P>): Charge {
  return { cost: made.cost, atMs: made.atMs, state: (made as { stateNumber?: number }).stateNumber, heldUntilMs: made.heldUntilMs };
}
