import { asCharge } from "../algorithms/decision.js";
import { hasSlots, type Policy } from "../algorithms/registry.js";
import type { Decision, Limit } from "../decide/decision.js";
import type { Guard } from "../decide/guard.js";
import { type KeyState, keyStateOf } from "../decide/inspection.js";
import type { Answer, Blocked, Inspection, Mode, Store } from "../decide/store.js";
import { isZero, keyStateAt, peekAt, zeroDecision } from "../decide/zero-limits.js";
import { emitDecisions, timeOfAsking } from "../events/decision-events.js";
import type { EventListener, KeyChangeEvent } from "../events/events.js";
import { activeListener } from "../events/listeners.js";
import { type Duration, parseDuration } from "../support/duration.js";
import { FloodgateError, invalidOption, shown } from "../support/errors.js";
import { checkOptions } from "../support/options.js";
import { allOf, andThen, isPromise, type Promised, runInBackground } from "../support/promises.js";
import { checkConsumedKey, type Key, type LimiterKey } from "./key.js";
import type { ChargeUse, Receipts } from "./receipt.js";
import { checkCharge, checkCost, emitChange, recordUsage, settleCharge, settleDecision } from "./settle.js";
import { keepSlot } from "./slots.js";

/** A named policy bound to a store. With a synchronous store (memory) its methods return plain values, else promises. */
export interface Limiter<M extends Mode = Mode> {
  readonly name: string;
  readonly policy: Policy;
  readonly store: Store<M>;
  /** Name, policy and algorithm, as the store receives them. */
  readonly limit: Limit;

  /**
   * The text of a key in stores and events. A secret key is shown as its digest.
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid.
   */
  keyText(key: LimiterKey): string;
  /**
   * Takes `cost` units (a whole number of at least 1, default 1) for a key if they are available. A rejection is a result, not an error.
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` or `FLOODGATE_INVALID_COST` if the key or the cost is invalid. `{ missingKeyIp }` is
   * invalid here, because a key often comes from a request's JSON.
   * @param options `hold`: how long this request's units are held, at most the limiter's own `hold`.
   */
  consume(key: Key, options?: ConsumeOptions): Answer<Decision, M>;
  /** Returns the decision that a request of cost 1 would get, and takes nothing. */
  peek(key: LimiterKey): Answer<Decision, M>;
  /**
   * Refunds what still counts of a decision's charge, once.
   * @param charged the decision, or its receipt.
   * @returns the units given back. 0 if nothing is left: the key was reset or evicted, the charge has expired, or it was refunded or
   * settled before.
   * @throws FloodgateError `FLOODGATE_FOREIGN_CHARGE` for a copy of a decision, another key, or a decision of another limiter or store;
   * `FLOODGATE_INVALID_RECEIPT` for a receipt that is not of this limiter and key; `FLOODGATE_STORE_FAULT` if it failed before: the
   * store may have done it, so it is not retried.
   */
  refund(key: LimiterKey, charged: Decision | string): Answer<number, M>;
  /**
   * Replaces the reserved `decision.cost` by the real cost (tokens, bytes), once, and not after a refund. A lower cost gives back what
   * still counts of the difference. A higher cost charges the difference, even into debt: later requests wait until it is paid off. In
   * windows a higher cost is charged only while the original charge still counts.
   * @param charged the decision, or its receipt.
   * @param cost a whole number of at least 0.
   * @returns the units charged in addition; negative if units were given back.
   * @throws FloodgateError `FLOODGATE_INVALID_COST` if the cost is invalid; the others as with a refund.
   */
  settle(key: LimiterKey, charged: Decision | string, cost: number): Answer<number, M>;
  /**
   * Records usage that has happened: units that nobody asked for before. It is never refused: beyond the limit it goes into debt, which
   * later requests wait for. A block makes no difference. If the store fails, a fallback store counts it; without one it is lost, and
   * there is an event `store-error`.
   * @param cost a whole number of at least 0.
   * @returns the units charged: less than `cost` only if the store failed, or at the largest debt (in buckets ten years, in a log 2^52
   * units, in windows what a number counts exactly).
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` or `FLOODGATE_INVALID_COST` if the key or the cost is invalid.
   */
  charge(key: Key, cost: number): Answer<number, M>;
  /**
   * Runs work in a slot of a `concurrency` limit, and gives the slot back when the work ends or throws. The slot is renewed meanwhile. Under a
   * limiter with `hold`, the units are charged when the work ends, and given back if it throws. If there is no free slot, the work does not
   * run: a rejection is a result, as with `consume`.
   *
   *     const ran = await limiter.run(user, () => convert(file));
   *     if (!ran.allowed) return `Too many at once. Try again later.`;
   *     return ran.value;
   *
   * @param options `cost`: how many slots it takes, default 1. `signal`: if it is aborted before the work begins, the work does not run, and
   * the promise rejects with its reason.
   * @throws what the work throws; `FLOODGATE_INVALID_OPTION` if the limit gives nothing back.
   */
  run<T>(key: Key, work: () => T | PromiseLike<T>, options?: RunOptions): Promise<Ran<T>>;
  /**
   * Signs a receipt for a decision's charge: a URL-safe string that `refund` and `settle` accept instead of the decision, in any process
   * with the same `receiptSecret` and the same Redis. The charge is settled once, by its decision or by its receipt. A receipt is valid
   * for an hour, or for two spans of the policy if that is longer. For a charge in a memory store or fallback, it works only in the
   * process that issued it.
   * @throws FloodgateError `FLOODGATE_INVALID_OPTION` without a `receiptSecret`; `FLOODGATE_FOREIGN_CHARGE` as with a refund.
   */
  receipt(decision: Decision): string;
  /** Clears the usage of a key, and lifts its ban. A block stays. There is an event `reset`. */
  reset(key: LimiterKey, options?: KeyChangeOptions): Answer<void, M>;
  /**
   * Turns a key away for a time, whatever its limit says: `limiter.block("user:42", "1h")`. `consume`, `peek` and the middleware reject it in
   * every process that shares the store. `retryAfterMs` is the time left. Blocking a key again replaces the earlier block. There is an event
   * `blocked`.
   * @param options `by`: who blocks the key, for the event.
   * @throws FloodgateError `FLOODGATE_INVALID_DURATION` if the duration is invalid. If the store fails, it throws or rejects with the fault.
   */
  block(key: LimiterKey, duration: Duration, options?: KeyChangeOptions): Answer<void, M>;
  /** Lifts the block of a key, and its ban. What the key has used stays. There is an event `unblocked`. */
  unblock(key: LimiterKey, options?: KeyChangeOptions): Answer<void, M>;
  /**
   * Shows what a key has used, as what it is: a bucket with its level, windows with their counts, a log, or a queue; and its block and ban.
   * Changes nothing. It is no decision: it fails if the store fails, and it emits no event.
   */
  keyState(key: LimiterKey): Answer<KeyState, M>;
  /**
   * Gives the name back to the store, so that a limiter with another policy can take it: for modules that are reloaded. The store stays
   * open. A middleware's limiters are closed with the middleware.
   */
  close(): void;
}

/** How many times of `consume`'s `hold` a limiter remembers. */
const maxHoldTimes = 100;

export interface ConsumeOptions {
  cost?: number;
  hold?: Duration;
}

/** `by`: who resets, blocks or unblocks a key, for the event. */
export interface KeyChangeOptions {
  readonly by?: string | undefined;
}

export interface RunOptions {
  readonly cost?: number;
  /** An AbortSignal. */
  readonly signal?: { readonly aborted: boolean; readonly reason?: unknown };
}

/** What `limiter.run` did: the value of the work, or the decision that rejected it. */
export type Ran<T> =
  | { readonly allowed: true; readonly decision: Decision; readonly value: T }
  | { readonly allowed: false; readonly decision: Decision };

/** How a limiter or a middleware uses its store, and who listens. */
export interface StoreClient<M extends Mode = Mode> {
  readonly guard: Guard<M>;
  readonly onEvent: EventListener | undefined;
  readonly receipts: Receipts | undefined;
}

/** What a limiter is made of: the one limit of `createLimiter`, or a rule. */
export interface LimitDefinition {
  readonly name: string;
  /** Throws `FLOODGATE_NO_POLICY` if the policy is a function of the request. */
  readonly limit: Limit;
  /** The limit under which charges are settled. A rule has several limits, so it has its name here: each charge is settled under its own. */
  readonly settled: Limit | string;
  /** All limits under which a key may have a count. */
  limits(): Promised<readonly PlannedLimit[]>;
  /** The limit that counts the rejections which lead to a ban. */
  readonly rejections: Limit | undefined;
  keyText(key: LimiterKey): string;
}

/** A limit under which a key may have a count, and the name of its plan; undefined for the rule's own and a policy function's. */
export interface PlannedLimit {
  readonly plan: string | undefined;
  readonly limit: Limit;
}

/** The limiter of `createLimiter`, and the limiter of a rule. The latter counts no rejection towards a ban. */
export class NamedLimiter<M extends Mode> implements Limiter<M> {
  readonly store: Store<M>;
  readonly guard: Guard<M>;
  readonly onEvent: EventListener | undefined;
  readonly close: () => void;
  readonly #definition: LimitDefinition;
  readonly #receipts: Receipts | undefined;
  readonly #byHold = new Map<number, Limit>();

  constructor(store: Store<M>, { guard, onEvent, receipts }: StoreClient<M>, definition: LimitDefinition, close: () => void) {
    this.store = store;
    this.guard = guard;
    this.onEvent = onEvent;
    this.#receipts = receipts;
    this.#definition = definition;
    this.close = close;
  }

  get name(): string {
    return this.#definition.name;
  }

  get limit(): Limit {
    return this.#definition.limit;
  }

  get policy(): Policy {
    return this.limit.policy;
  }

  keyText(key: LimiterKey): string {
    return this.#definition.keyText(key);
  }

  consume(key: Key, options?: ConsumeOptions): Answer<Decision, M> {
    const cost = options === undefined ? 1 : checkedCost(options);
    const limit = this.holding(options?.hold);
    const text = this.keyText(checkConsumedKey(key));
    const listener = activeListener(this.onEvent);
    const askedMs = listener === undefined ? 0 : timeOfAsking(this.guard);
    const deciding = isZero(limit) ? zeroDecision(limit, cost) : this.guard.consume(limit, text, cost);
    const decided =
      listener === undefined
        ? deciding
        : andThen<Decision, Decision>(deciding, (decision) => {
            emitDecisions(listener, [{ key: text }], { allowed: decision.allowed, decision, all: [decision] }, askedMs);
            return decision;
          });
    return promisedBy<Decision, M>(this.guard.mode, decided);
  }

  /** This limit, whose requests hold their units for another time. */
  holding(hold: Duration | undefined, where = "consume"): Limit {
    if (hold === undefined) return this.limit;
    const holdMs = parseDuration(hold, "hold");
    const longestMs = hasSlots(this.policy) ? undefined : this.policy.holdMs;
    if (longestMs === undefined || holdMs > longestMs) {
      const advice = `Write createLimiter({ name: ${shown(this.name)}, policy, store, hold: ${shown(hold)} })`;
      const problem = longestMs === undefined ? "charges units at once" : `holds units for ${longestMs} ms at most`;
      throw invalidOption(`${where}: \`hold\` was given, but ${shown(this.name)} ${problem}. ${advice}.`, ["hold"]);
    }
    const known = this.#byHold.get(holdMs) ?? Object.freeze({ ...this.limit, holdMs });
    if (this.#byHold.size < maxHoldTimes) this.#byHold.set(holdMs, known);
    return known;
  }

  peek(key: LimiterKey): Answer<Decision, M> {
    return promisedBy<Decision, M>(this.guard.mode, peekAt(this.guard, this.limit, this.keyText(key)));
  }

  refund(key: LimiterKey, charged: Decision | string): Answer<number, M> {
    return this.#settle(this.keyText(key), charged, undefined);
  }

  settle(key: LimiterKey, charged: Decision | string, cost: number): Answer<number, M> {
    return this.#settle(this.keyText(key), charged, checkCost(cost, 0));
  }

  /** @param cost undefined for a refund. */
  #settle(key: string, charged: Decision | string, cost: number | undefined): Answer<number, M> {
    const { name, guard, onEvent } = this;
    const isReceipt = typeof charged === "string";
    const change = isReceipt
      ? this.useReceipt(key, charged, (limit, charge) => settleCharge(guard, limit, charge, cost ?? 0))
      : settleDecision(guard, this.#definition.settled, key, charged, cost ?? 0);
    return emitChange(change, { name, key, decision: isReceipt ? undefined : charged }, cost, onEvent) as Answer<number, M>;
  }

  charge(key: Key, cost: number): Answer<number, M> {
    const text = this.keyText(checkConsumedKey(key, "charge"));
    if (hasSlots(this.policy)) {
      throw invalidOption(
        `${shown(this.name)} counts requests in flight, which \`charge\` cannot add to. Write limiter.run(key, work), or charge another limit.`,
      );
    }
    return promisedBy<number, M>(this.guard.mode, recordUsage(this, this.limit, text, checkCost(cost, 0)));
  }

  useReceipt<T>(key: string, receipt: string, use: ChargeUse<Promised<T>>): Promised<T> {
    const receipts = this.#receipts ?? noSecret(this.name, "FLOODGATE_INVALID_RECEIPT", "check");
    return andThen<readonly PlannedLimit[], T>(this.#definition.limits(), (planned) => {
      const limits = planned.map(({ limit }) => limit);
      return receipts.use(this.guard, limits, key, receipt, use);
    });
  }

  async run<T>(key: Key, work: () => T | PromiseLike<T>, options: RunOptions = {}): Promise<Ran<T>> {
    checkOptions("run", options, ["cost", "signal"], "limiter.run(key, work, { signal })");
    const { cost = 1, signal } = options;
    if (this.policy.holdMs === undefined) {
      throw invalidOption(
        `\`run\` gives units back when the work ends, but ${shown(this.name)} charges them at once. Write policy: concurrency({ limit: 10, hold: "30s" }), or give the limiter a \`hold\`.`,
      );
    }
    if (signal?.aborted) throw signal.reason;
    const decision = await this.consume(key, { cost });
    if (!decision.allowed) return { allowed: false, decision };
    let real = 0;
    try {
      keepSlot(decision, this.onEvent);
      if (signal?.aborted) throw signal.reason;
      const value = await work();
      real = decision.cost;
      return { allowed: true, decision, value };
    } finally {
      // A slot that cannot be given back comes back by itself.
      await runInBackground(
        () => settleDecision(this.guard, this.#definition.settled, this.keyText(key), decision, real),
        (error) => activeListener(this.onEvent)?.({ type: "refund-failed", name: this.name, key: this.keyText(key), error }),
      );
    }
  }

  receipt(decision: Decision): string {
    const receipts = this.#receipts ?? noSecret(this.name, "FLOODGATE_INVALID_OPTION", "sign");
    return receipts.issue(this.name, checkCharge(this.guard, this.#definition.settled, decision));
  }

  reset(key: LimiterKey, options?: KeyChangeOptions): Answer<void, M> {
    const change = this.#keyChange("reset", key, options);
    const text = change.key;
    return andThen<readonly PlannedLimit[], void>(this.#definition.limits(), (planned) => {
      // Plans with the same times share one count.
      const counts = new Map(planned.map(({ limit }) => [limit.policy.stateKind, limit]));
      const { rejections } = this.#definition;
      const limits = [...counts.values(), ...(rejections === undefined ? [] : [rejections])];
      return andThen<unknown, void>(allOf(limits.map((limit) => this.guard.reset(limit, text))), () =>
        this.#emit({ type: "reset", ...change }),
      );
    }) as Answer<void, M>;
  }

  block(key: LimiterKey, duration: Duration, options?: KeyChangeOptions): Answer<void, M> {
    const change = this.#keyChange("block", key, options);
    const forMs = parseDuration(duration);
    const blocked = this.guard.block(this.name, change.key, forMs, "block");
    return andThen<Blocked, void>(blocked, () => this.#emit({ type: "blocked", ...change, forMs })) as Answer<void, M>;
  }

  unblock(key: LimiterKey, options?: KeyChangeOptions): Answer<void, M> {
    const change = this.#keyChange("unblock", key, options);
    const unblocked = this.guard.unblock(this.name, change.key);
    return andThen<void, void>(unblocked, () => this.#emit({ type: "unblocked", ...change })) as Answer<void, M>;
  }

  #keyChange(method: string, key: LimiterKey, options?: KeyChangeOptions): Pick<KeyChangeEvent, "name" | "key" | "by"> {
    if (options !== undefined) checkOptions(method, options, ["by"], `limiter.${method}(key, { by: "ann" })`);
    return { name: this.name, key: this.keyText(key), by: options?.by };
  }

  #emit(event: KeyChangeEvent): void {
    activeListener(this.onEvent)?.(event);
  }

  keyState(key: LimiterKey): Answer<KeyState, M> {
    const text = this.keyText(key);
    return andThen<readonly PlannedLimit[], KeyState>(this.#definition.limits(), (limits) => {
      const answers = allOf<Inspection>(limits.map(({ limit }) => keyStateAt(this.guard, limit, text)));
      return andThen<readonly Inspection[], KeyState>(answers, (seen) =>
        keyStateOf(seen.map((inspection, i) => [limits[i]?.plan, inspection])),
      );
    }) as Answer<KeyState, M>;
  }
}

function noSecret(name: string, code: "FLOODGATE_INVALID_OPTION" | "FLOODGATE_INVALID_RECEIPT", use: "check" | "sign"): never {
  throw new FloodgateError(
    code,
    `${shown(name)} has no \`receiptSecret\` to ${use} receipts with. Write receiptSecret: process.env.RECEIPT_SECRET, at least 32 characters and the same in each process.`,
  );
}

const consumeOptions = ["cost", "hold"];

/** `consume(key, 5)`, as other libraries take it, must not take one unit. */
function checkedCost(options: ConsumeOptions): number {
  // Without the arrays that `checkOptions` makes.
  let isUsual = options?.cost !== undefined;
  for (const option in options) isUsual &&= consumeOptions.includes(option);
  if (!isUsual)
    checkOptions("consume", options, consumeOptions, `limiter.consume(key, { cost: ${typeof options === "number" ? options : 2} })`);
  const { cost = 1 } = options;
  return checkCost(cost);
}

/** What a limiter returns. A promise too if an asynchronous store has decided at once, so that apps can rely on it. */
export function promisedBy<T, M extends Mode>(mode: M, decided: Promised<T>): Answer<T, M> {
  return (mode === "sync" || isPromise(decided) ? decided : Promise.resolve(decided)) as Answer<T, M>;
}

/**
 * Renews the slots of a receipt, which stays the same: the next renewal and the refund are given the same one, and so is a retry. Slots that had
 * come back are taken again if there is room.
 * @returns whether the slots are held, or nothing was charged because the store had failed; undefined if it is a limit of another kind.
 * @throws FloodgateError `FLOODGATE_INVALID_RECEIPT` as a refund does. If the store fails, it throws or rejects with the fault.
 */
export function renewSlots(limiter: Limiter, key: LimiterKey, receipt: string): Promised<boolean | undefined> {
  const named = limiter as NamedLimiter<Mode>;
  return named.useReceipt<boolean | undefined>(limiter.keyText(key), receipt, (limit, charge) => {
    if (typeof limit === "string") return true;
    if (!hasSlots(limit.policy)) return undefined;
    if (charge === undefined || charge.fate !== undefined) return false;
    const renewed = (charge.settler ?? named.guard).renew?.(limit, charge.key, charge) as Promised<Decision | undefined>;
    return andThen<Decision | undefined, boolean>(renewed, (decision) => {
      const held = decision?.allowed === true;
      if (held) Object.assign(charge, asCharge(decision));
      return held;
    });
  });
}
