/** The result of a check under one policy. Durations are whole milliseconds from the store's current time. */
export interface DecisionUnder<P> {
  /** Whether the request may pass. A rejection is a result, never an exception. */
  readonly allowed: boolean;
  /** The largest cost that could ever pass: the policy's `limit`, `capacity` or `burst`. */
  readonly limit: number;
  /** The largest cost that would pass right now, after this decision; never below 0. */
  readonly remaining: number;
  /** The units of the limit that are taken now, after this decision: `limit - remaining`. A debt shows as the whole limit. */
  readonly used: number;
  /** The shortest wait after which a request of the same cost passes if nothing else happens. 0 if it passes now, Infinity if never. */
  readonly retryAfterMs: number;
  /** The time after which the key is as if it had never been used. */
  readonly resetAfterMs: number;
  /** How long to hold an allowed request (`leakyBucket`); 0 for all other policies. */
  readonly delayMs: number;
  /** The units that the request costs. */
  readonly cost: number;
  /** The time that the charge counts from, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The limiter's name. */
  readonly name: string;
  readonly policy: P;
  /**
   * Whether the store failed and `onStoreError` decided. With a fallback, the numbers are those of its own counts, and `limit` is this
   * process's share. Otherwise they are unknown: `remaining` and `resetAfterMs` are 0, and `retryAfterMs` is 0 or, if the request is
   * rejected, the time until the store is asked again.
   */
  readonly degraded: boolean;
}

/** What a decision charged, as `MadeDecision.charged` received it. The types of the limit and of the guard are their owners'. */
export interface ChargeParts {
  readonly cost: number;
  readonly atMs: number;
  readonly state: number | undefined;
  readonly limit: object;
  readonly key: string;
  readonly guard: object | undefined;
}

/** Private fields distinguish a decision from its copies: a spread, JSON and structuredClone do not copy them. */
export class MadeDecision<P> implements DecisionUnder<P> {
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
  // Private copies, so that editing the decision does not change its charge.
  readonly #cost: number;
  readonly #atMs: number;
  #state: number | undefined;
  #limit: object | undefined;
  #guard: object | undefined;
  /** The charged key, or the record of the charge. The record is made on demand, because most decisions are never settled. */
  #charged: string | object | undefined;

  // On the prototype, so that a decision needs no room for it.
  get used(): number {
    return this.limit - this.remaining;
  }

  static owned<P>(made: DecisionUnder<P>): MadeDecision<P> {
    return #charged in made ? (made as MadeDecision<P>) : MadeDecision.restated(made, {});
  }

  static restated<P>(made: DecisionUnder<P>, changes: Partial<DecisionUnder<P>>): MadeDecision<P> {
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

  static inState<P>(made: DecisionUnder<P>, state: number): MadeDecision<P> {
    const own: MadeDecision<P> = #charged in made ? (made as MadeDecision<P>) : MadeDecision.restated(made, {});
    own.#state = state;
    return own;
  }

  static stateOf(made: object): number | undefined {
    return #charged in made ? made.#state : undefined;
  }

  static charged<P>(made: DecisionUnder<P>, limit: object, key: string, guard: object | undefined): MadeDecision<P> {
    // Copy a decision that another copy of this package or a store made by hand, or that was returned before.
    const isFree = #charged in made && made.#charged === undefined;
    const own: MadeDecision<P> = isFree ? (made as MadeDecision<P>) : MadeDecision.restated(made, {});
    own.#limit = limit;
    own.#guard = guard;
    own.#charged = key;
    return own;
  }

  /** Whether a decision has charged a key. */
  static hasCharge(value: object): boolean {
    return #charged in value && value.#charged !== undefined;
  }

  /** The record of a decision's charge; undefined if it charged nothing, `"copy"` if the value is not an original decision. */
  static recordOf<Record extends object>(value: unknown, make: (parts: ChargeParts) => Record): Record | undefined | "copy" {
    if (typeof value !== "object" || value === null || !(#charged in value)) return "copy";
    const key = value.#charged;
    if (typeof key !== "string") return key as Record | undefined;
    const record = make({
      cost: value.#cost,
      atMs: value.#atMs,
      state: value.#state,
      limit: value.#limit as object,
      key,
      guard: value.#guard,
    });
    value.#charged = record;
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
    policy: P,
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
