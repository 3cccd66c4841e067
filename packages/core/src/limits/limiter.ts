import { toPolicy } from "../algorithms/policy.js";
import type { Policy, PolicyOptions } from "../algorithms/registry.js";
import { combine } from "../decide/all-or-nothing.js";
import type { CombinedDecision, Decision } from "../decide/decision.js";
import type { Guard } from "../decide/guard.js";
import { type KeyState, keyStateOf } from "../decide/inspection.js";
import { checkLease, checkName, createLimit, type Limit } from "../decide/limit.js";
import { type Answer, type Blocked, type Check, checkStore, type Inspection, type Mode, type Store, scopeOf } from "../decide/store.js";
import { emitDecisions } from "../events/decision-events.js";
import type { EventListener } from "../events/events.js";
import { emitWarning, heard, listenerOf } from "../events/listeners.js";
import { type FailureOptions, failureOptionNames } from "../failure/failure-options.js";
import { guardStore } from "../failure/store-guard.js";
import { type Duration, parseDuration } from "../support/duration.js";
import { FloodgateError, shown } from "../support/errors.js";
import { checkOptions, functionOrNothing } from "../support/options.js";
import { andThen, isPromise, type Promised } from "../support/promises.js";
import { steadyMs } from "../support/runtime.js";
import { WeakList } from "../support/weak-list.js";
import { encodeKey, isClientIpv6, isMissingKeyIp, type Key, type LimiterKey, namedMissingKeyText } from "./key.js";
import { claimNames, meaningOf } from "./names.js";
import { type ReceiptSecret, Receipts } from "./receipt.js";
import { Settlements } from "./settlements.js";

/** A named policy bound to a store. With a synchronous store (memory) its methods return plain values, else promises. */
export interface Limiter<M extends Mode = Mode> {
  readonly name: string;
  readonly policy: Policy;
  readonly store: Store<M>;
  /** The store with timeout, circuit breaker and `onStoreError`. */
  readonly guard: Store<M>;
  /** Name, policy and algorithm, as the store receives them. */
  readonly limit: Limit;
  /** The listener for its events. */
  readonly onEvent: EventListener | undefined;

  /**
   * The text of a key in stores and events. A secret key is shown as its digest.
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid.
   */
  keyText(key: LimiterKey): string;
  /**
   * Takes `cost` units (a whole number of at least 1, default 1) for a key if they are available. A rejection is a result, not an error.
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` or `FLOODGATE_INVALID_COST` if the key or the cost is invalid. `{ missingKeyIp }` is
   * invalid here, because a key often comes from a request's JSON.
   */
  consume(key: Key, options?: { cost?: number }): Answer<Decision, M>;
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
   * Signs a receipt for a decision's charge: a URL-safe string that `refund` and `settle` accept instead of the decision, in any process
   * with the same `receiptSecret` and the same Redis. The charge is settled once, by its decision or by its receipt. A receipt is valid
   * for an hour, or for two spans of the policy if that is longer. For a charge in a memory store or fallback, it works only in the
   * process that issued it.
   * @throws FloodgateError `FLOODGATE_INVALID_OPTION` without a `receiptSecret`; `FLOODGATE_FOREIGN_CHARGE` as with a refund.
   */
  receipt(decision: Decision): string;
  /** Clears the usage of a key, and lifts its ban. A block stays. */
  reset(key: LimiterKey): Answer<void, M>;
  /**
   * Turns a key away for a time, whatever its limit says: `limiter.block("user:42", "1h")`. `consume`, `peek` and the middleware reject it in
   * every process that shares the store. `retryAfterMs` is the time left. Blocking a key again replaces the earlier block.
   * @throws FloodgateError `FLOODGATE_INVALID_DURATION` if the duration is invalid. If the store fails, it throws or rejects with the fault.
   */
  block(key: LimiterKey, duration: Duration): Answer<void, M>;
  /** Lifts the block of a key, and its ban. What the key has used stays. */
  unblock(key: LimiterKey): Answer<void, M>;
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

export interface LimiterOptions<M extends Mode> extends FailureOptions {
  /** Appears in headers, keys and events. One name on one store is one count. */
  name: string;
  /** The limit: `fixedWindow({ limit: 5, window: "1m" })`, or the same as a plain object, as in a rules file. */
  policy: Policy | PolicyOptions;
  /** Where the counts are kept: `memoryStore()`, `redisStore(client)`, or your own. */
  store: Store<M>;
  /** Called with each event: decisions, refunds, settlements, store errors, breaker changes. */
  onEvent?: EventListener;
  /** Signs and checks receipts: a string of at least 32 characters, or several. The first one signs, and all are accepted. */
  receiptSecret?: ReceiptSecret;
  /**
   * Whether this process takes units of a busy key ahead, in one step, and spends them without asking the store. Default: as the store is
   * set up. Only a Redis store leases. Not with `leakyBucket` and `countRejected`.
   */
  lease?: boolean;
}

/**
 * Makes a limiter: a named policy on a store.
 *
 *     const limiter = createLimiter({ name: "login", policy: slidingWindowLog({ limit: 5, window: "15m" }), store: memoryStore() });
 *     const { allowed, retryAfterMs } = limiter.consume("user:42");
 *
 * @throws FloodgateError if an option is invalid, or another policy has this name on the store.
 */
export function createLimiter<M extends Mode>(options: LimiterOptions<M>): Limiter<M> {
  const where = "createLimiter";
  checkOptions(
    where,
    options,
    ["name", "policy", "store", ...failureOptionNames, "onEvent", "receiptSecret", "lease"],
    'createLimiter({ name: "api", policy, store: memoryStore() })',
  );
  const name = checkName(where, options.name);
  const policy = toPolicy(where, options.policy);
  const lease = checkLease(where, options.lease, [policy]);
  const store = checkStore(where, options.store);
  functionOrNothing(where, "onEvent", options.onEvent, "(event) => console.log(event)");
  const receipts = Receipts.of(where, options);
  const guard = guardStore(where, store, options);
  const giveNameBack = claimNames(where, guard, [{ name, meaning: meaningOf(policy) }]);
  guard.listen();
  return new OwnLimiter(store, guard, createLimit(name, policy, lease), options.onEvent, receipts, giveNameBack);
}

/** The default `ipv6Prefix` of middlewares. */
const ipv6Prefix = 56;

function plainKeyText(key: LimiterKey): string {
  return isMissingKeyIp(key) ? namedMissingKeyText(key, ipv6Prefix) : encodeKey(key);
}

/** How many keys a limiter looks at for addresses: a mistake shows early. */
const mostLooks = 1000;

/** `plainKeyText` of a limiter, which warns once if keys are IPv6 addresses. */
function watchedKeyText(name: string, onEvent: EventListener | undefined): (key: LimiterKey) => string {
  let looksLeft = mostLooks;
  return (key) => {
    if (looksLeft > 0) {
      looksLeft--;
      const address = [key].flat().find(isClientIpv6);
      if (address !== undefined) {
        looksLeft = 0;
        emitWarning(
          listenerOf(onEvent),
          "FLOODGATE_KEY_PER_ADDRESS",
          `The limiter ${shown(name)} was given the IPv6 address ${shown(address)} as a key. One client has 2^64 addresses or more, so this limits nobody. Write limiter.consume(clientKey(ip)): that is the client's network.`,
          `FLOODGATE_KEY_PER_ADDRESS ${name}`,
        );
      }
    }
    return plainKeyText(key);
  };
}

/** A limit bound to a store: a limiter but for the name, which somebody else has claimed. */
export class BoundLimiter<M extends Mode> implements Omit<Limiter<M>, "close"> {
  readonly store: Store<M>;
  readonly guard: Store<M>;
  readonly limit: Limit;
  readonly onEvent: EventListener | undefined;
  readonly keyText: (key: LimiterKey) => string;
  readonly #settlements: Settlements;

  constructor(
    store: Store<M>,
    guard: Store<M>,
    limit: Limit,
    onEvent: EventListener | undefined,
    keyText: (key: LimiterKey) => string = plainKeyText,
    receipts?: Receipts,
  ) {
    this.store = store;
    this.guard = guard;
    this.limit = limit;
    this.onEvent = listenerOf(onEvent);
    this.keyText = keyText;
    this.#settlements = new Settlements(guard, limit, () => [limit], receipts, this.onEvent);
  }

  get name(): string {
    return this.limit.name;
  }

  get policy(): Policy {
    return this.limit.policy;
  }

  #promised<T>(decided: Promised<T>): Answer<T, M> {
    return promisedBy(this.guard.mode, decided);
  }

  consume(key: Key, options?: { cost?: number }): Answer<Decision, M> {
    const cost = options === undefined ? 1 : checkedCost(options);
    const text = this.keyText(checkConsumedKey(key));
    const listener = heard(this.onEvent);
    if (listener === undefined) return this.#promised(this.guard.consume(this.limit, text, cost));
    const askedMs = steadyMs();
    const emitted = (made: Decision): Decision => {
      emitDecisions(listener, [{ key: text }], [made], { allowed: made.allowed, askedMs });
      return made;
    };
    return this.#promised(andThen<Decision, Decision>(this.guard.consume(this.limit, text, cost), emitted));
  }

  peek(key: LimiterKey): Answer<Decision, M> {
    return this.#promised(this.guard.peek(this.limit, this.keyText(key)));
  }

  refund(key: LimiterKey, charged: Decision | string): Answer<number, M> {
    return this.#settlements.refund(this.keyText(key), charged) as Answer<number, M>;
  }

  settle(key: LimiterKey, charged: Decision | string, cost: number): Answer<number, M> {
    return this.#settlements.settle(this.keyText(key), charged, cost) as Answer<number, M>;
  }

  receipt(decision: Decision): string {
    return this.#settlements.receipt(decision);
  }

  reset(key: LimiterKey): Answer<void, M> {
    return this.guard.reset(this.limit, this.keyText(key));
  }

  block(key: LimiterKey, duration: Duration): Answer<void, M> {
    return block(this.guard, this.name, this.keyText(key), duration) as Answer<void, M>;
  }

  unblock(key: LimiterKey): Answer<void, M> {
    return this.guard.unblock(this.name, this.keyText(key));
  }

  keyState(key: LimiterKey): Answer<KeyState, M> {
    const seen = this.guard.keyState(this.limit, this.keyText(key));
    return andThen<Inspection, KeyState>(seen, (inspection) => keyStateOf([[undefined, inspection]])) as Answer<KeyState, M>;
  }
}

/** The limiters of `createLimiter` in this process that are not closed. */
export const openLimiters: WeakList<Limiter> = new WeakList();

/** A limiter of `createLimiter`, which has claimed its name itself. */
class OwnLimiter<M extends Mode> extends BoundLimiter<M> implements Limiter<M> {
  readonly #leave: () => void;
  #giveNameBack: (() => void) | undefined;

  constructor(
    store: Store<M>,
    guard: Guard<M>,
    limit: Limit,
    onEvent: EventListener | undefined,
    receipts: Receipts | undefined,
    giveNameBack: () => void,
  ) {
    super(store, guard, limit, onEvent, watchedKeyText(limit.name, onEvent), receipts);
    this.#leave = () => guard.close();
    this.#giveNameBack = giveNameBack;
    openLimiters.add(this);
  }

  close(): void {
    openLimiters.delete(this);
    this.#giveNameBack?.();
    this.#giveNameBack = undefined;
    this.#leave();
  }
}

/** Blocks a key of a name by hand. @throws FloodgateError `FLOODGATE_INVALID_DURATION` if the duration is invalid. */
export function block(store: Store, name: string, key: string, duration: Duration): void | PromiseLike<void> {
  return andThen<Blocked, void>(store.block(name, key, parseDuration(duration), "block"), () => undefined);
}

/** `consume(key, 5)`, as other libraries take it, must not take one unit. */
function checkedCost(options: { cost?: number }): number {
  if (options?.cost !== undefined) return checkCost(options.cost);
  const example = `limiter.consume(key, { cost: ${typeof options === "number" ? options : 2} })`;
  checkOptions("consume", options, ["cost"], example);
  return 1;
}

/** @throws FloodgateError `FLOODGATE_INVALID_KEY` for `{ missingKeyIp }`: unchecked JSON of a request must not choose another client. */
export function checkConsumedKey(key: Key): Key {
  if (!isMissingKeyIp(key)) return key;
  throw new FloodgateError(
    "FLOODGATE_INVALID_KEY",
    "`consume` takes a key, but was given { missingKeyIp }, which is for peek, reset, block and unblock. Write limiter.consume(String(value)).",
  );
}

/** One of several limits that a request must pass. */
export interface LimiterCheck<M extends Mode> {
  readonly limiter: Limiter<M>;
  readonly key: Key;
  /** A whole number of at least 1; default 1. */
  readonly cost?: number;
}

/**
 * Checks several limits on one store in one atomic step: all are charged, or none is. If the store fails, the first limiter's
 * `timeoutMs` and `onStoreError` apply.
 *
 *     const { allowed, decision } = consumeAll([
 *       { limiter: perIp, key: clientKey(ip) },
 *       { limiter: perUser, key: userId, cost: 3 },
 *     ]);
 *
 * @throws FloodgateError if the limiters have different stores, or one appears twice with the same key.
 */
export function consumeAll<M extends Mode>(checks: readonly LimiterCheck<M>[]): Answer<CombinedDecision, M> {
  const first = checks[0]?.limiter;
  if (first === undefined) {
    throw new FloodgateError("FLOODGATE_INVALID_OPTION", "consumeAll takes at least one check. Write consumeAll([{ limiter, key }]).");
  }
  const list = checks.map(({ limiter, key, cost }, index): Check => {
    if (scopeOf(limiter.store) !== scopeOf(first.store)) {
      throw new FloodgateError(
        "FLOODGATE_DIFFERENT_STORES",
        `consumeAll checks limiters of one store in one atomic step, but ${shown(limiter.name)} and ${shown(first.name)} have different stores. Give both the same store.`,
      );
    }
    const check = { limit: limiter.limit, key: limiter.keyText(checkConsumedKey(key)), cost: cost === undefined ? 1 : checkCost(cost) };
    for (let i = 0; i < index; i++) {
      const other = checks[i];
      if (other?.limiter.name === limiter.name && other.limiter.keyText(other.key) === check.key) {
        throw new FloodgateError(
          "FLOODGATE_DUPLICATE_NAME",
          `consumeAll was given ${shown(limiter.name)} twice with the same key. Pass it once, with the sum of the costs.`,
        );
      }
    }
    return check;
  });
  const listeners = checks.map(({ limiter }) => heard(limiter.onEvent));
  const askedMs = listeners.some((listener) => listener !== undefined) ? steadyMs() : 0;
  const combined = (decisions: Decision[]): CombinedDecision => {
    const whole = combine(list, decisions);
    const { allowed } = whole;
    listeners.forEach((listener, i) => {
      if (listener !== undefined) emitDecisions(listener, [list[i] as Check], [whole.all[i] as Decision], { allowed, askedMs });
    });
    return whole;
  };
  return promisedBy<CombinedDecision, M>(first.guard.mode, andThen<Decision[], CombinedDecision>(first.guard.consumeAll(list), combined));
}

/** What a limiter returns. A promise too if an asynchronous store has decided at once, so that apps can rely on it. */
function promisedBy<T, M extends Mode>(mode: M, decided: Promised<T>): Answer<T, M> {
  return (mode === "sync" || isPromise(decided) ? decided : Promise.resolve(decided)) as Answer<T, M>;
}

/** @throws FloodgateError `FLOODGATE_INVALID_COST` unless it is a whole number of at least 1. */
export function checkCost(cost: unknown): number {
  if (typeof cost === "number" && Number.isSafeInteger(cost) && cost >= 1) return cost;
  throw new FloodgateError(
    "FLOODGATE_INVALID_COST",
    `A cost must be a whole number of at least 1, but was ${shown(cost)}. Write { cost: 1 }. To read without taking units, use peek.`,
  );
}
