import { toPolicy } from "../algorithms/policy.js";
import type { Policy, PolicyOptions } from "../algorithms/registry.js";
import { type FailureOptions, failureOptionNames } from "../stores/failure-options.js";
import { type Answer, type Check, checkStore, type Mode, type Store, scopeOf } from "../stores/store.js";
import { guardStore } from "../stores/store-guard.js";
import { FloodgateError, shown } from "../support/errors.js";
import { checkOptions, functionOrNothing } from "../support/options.js";
import { andThen } from "../support/promises.js";
import { combine } from "./all-or-nothing.js";
import type { CombinedDecision, Decision } from "./decision.js";
import { type EventListener, isTold, listenerOf, tell } from "./events.js";
import { encodeKey, isMissingKeyIp, type LimiterKey, namedMissingKeyText } from "./key.js";
import { checkName, createLimit, type Limit } from "./limit.js";
import { claimNames, meaningOf } from "./names.js";
import { type ReceiptSecret, Receipts } from "./receipt.js";
import { Settlements } from "./settlements.js";

/** A named policy bound to a store. Its answers are plain values with a store that answers at once, else promises. */
export interface Limiter<M extends Mode = Mode> {
  readonly name: string;
  readonly policy: Policy;
  readonly store: Store<M>;
  /** The store as it is asked: in time, and with somebody else to decide where it fails. */
  readonly guard: Store<M>;
  /** What the store is handed: name, policy and algorithm. */
  readonly limit: Limit;
  /** Who is told of its decisions, refunds and settlements. */
  readonly onEvent: EventListener | undefined;

  /**
   * The text under which stores and events know a key. A secret key is shown as its digest.
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid.
   */
  keyText(key: LimiterKey): string;
  /**
   * Asks for `cost` units (default 1, a whole number of at least 1) for a key, and takes them if they are there. A rejection is a
   * result, not an error.
   * @throws FloodgateError `FLOODGATE_INVALID_KEY` or `FLOODGATE_INVALID_COST` if the key or the cost is invalid.
   */
  consume(key: LimiterKey, options?: { cost?: number }): Answer<Decision, M>;
  /** Looks as a request of cost 1 would, and takes nothing. */
  peek(key: LimiterKey): Answer<Decision, M>;
  /**
   * Gives back what a decision of this limiter charged, once, as far as it still counts.
   * @param charged the decision, or its receipt.
   * @returns the units given back. 0 if nothing is left to give back: the key was reset or evicted, the charge has expired, or it was
   * refunded or settled before.
   * @throws FloodgateError `FLOODGATE_FOREIGN_CHARGE` for a copy of a decision, another key, or a decision of another limiter or store;
   * `FLOODGATE_INVALID_RECEIPT` for a receipt that is not of this limiter and key; `FLOODGATE_STORE_FAULT` if it failed before: the
   * store may have done it, so it is not tried again.
   */
  refund(key: LimiterKey, charged: Decision | string): Answer<number, M>;
  /**
   * Replaces the `decision.cost` that was reserved by the real cost (tokens, bytes), once, and not after a refund. A lower cost gives
   * back the difference as far as it still counts. A higher cost charges it, even into debt, which later requests wait for; in windows
   * only while the charge still counts.
   * @param charged the decision, or its receipt.
   * @param cost a whole number of at least 0.
   * @returns the units charged in addition, or below 0 those given back.
   * @throws FloodgateError `FLOODGATE_INVALID_COST` if the cost is invalid; the others as with a refund.
   */
  settle(key: LimiterKey, charged: Decision | string, cost: number): Answer<number, M>;
  /**
   * Signs a receipt of what a decision charged: a URL-safe text that `refund` and `settle` take in its place, in any process that has
   * the same `receiptSecret` and the same Redis. The charge is settled once, by its decision or by its receipt. A receipt is valid for
   * an hour, or for two spans of the policy if that is longer. If only this process knows the charge (a memory store, a fallback), the
   * receipt changes nothing in another process.
   * @throws FloodgateError `FLOODGATE_INVALID_OPTION` without a `receiptSecret`; `FLOODGATE_FOREIGN_CHARGE` as with a refund.
   */
  receipt(decision: Decision): string;
  /** Forgets what a key has used. */
  reset(key: LimiterKey): Answer<void, M>;
}

export interface LimiterOptions<M extends Mode> extends FailureOptions {
  /** Stands in headers, keys and events; one name on one store is one count. */
  name: string;
  policy: Policy | PolicyOptions;
  store: Store<M>;
  onEvent?: EventListener;
  /** Signs and checks receipts: a text of at least 32 characters, or several. The first signs, and all are accepted. */
  receiptSecret?: ReceiptSecret;
}

/** @throws FloodgateError where an option is wrong, or the name is taken on that store by another policy. */
export function createLimiter<M extends Mode>(options: LimiterOptions<M>): Limiter<M> {
  const where = "createLimiter";
  checkOptions(
    where,
    options,
    ["name", "policy", "store", ...failureOptionNames, "onEvent", "receiptSecret"],
    'createLimiter({ name: "api", policy, store: memoryStore() })',
  );
  const name = checkName(where, options.name);
  const policy = toPolicy(where, options.policy);
  const store = checkStore(where, options.store);
  functionOrNothing(where, "onEvent", options.onEvent, "(event) => console.log(event)");
  const receipts = Receipts.of(where, options.receiptSecret);
  const guard = guardStore(where, store, options);
  claimNames(where, guard, [{ name, meaning: meaningOf(policy) }]);
  guard.listen();
  return new BoundLimiter(store, guard, createLimit(name, policy), options.onEvent, plainKeyText, receipts);
}

/** Middlewares take 56 bits of an IPv6 address for one client unless they are told otherwise. */
const ipv6Prefix = 56;

function plainKeyText(key: LimiterKey): string {
  return isMissingKeyIp(key) ? namedMissingKeyText(key, ipv6Prefix) : encodeKey(key);
}

/** A limit bound to a store. */
export class BoundLimiter<M extends Mode> implements Limiter<M> {
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

  consume(key: LimiterKey, options?: { cost?: number }): Answer<Decision, M> {
    const cost = options?.cost === undefined ? 1 : checkCost(options.cost);
    const text = this.keyText(key);
    const decision = this.guard.consume(this.limit, text, cost);
    if (this.onEvent === undefined) return decision;
    const onEvent = this.onEvent;
    const told = (made: Decision): Decision => {
      tell(onEvent, text, made, false);
      return made;
    };
    return andThen<Decision, Decision>(decision, told) as Answer<Decision, M>;
  }

  peek(key: LimiterKey): Answer<Decision, M> {
    return this.guard.peek(this.limit, this.keyText(key));
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
}

/** One limit of several that a request must pass. */
export interface LimiterCheck<M extends Mode> {
  readonly limiter: Limiter<M>;
  readonly key: LimiterKey;
  /** A whole number of at least 1; default 1. */
  readonly cost?: number;
}

/**
 * Checks several limits of one store in one atomic step: all pass and all are charged, or none is. Where the store fails, the
 * first limiter's `timeoutMs` and `onStoreError` hold for all.
 * @throws FloodgateError where the limiters have different stores, or one stands twice with one key.
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
        `consumeAll checks limiters of one store in one atomic step, but ${shown(limiter.name)} has another store than ${shown(first.name)}. Give both the same store.`,
      );
    }
    const check = { limit: limiter.limit, key: limiter.keyText(key), cost: cost === undefined ? 1 : checkCost(cost) };
    for (let i = 0; i < index; i++) {
      const other = checks[i];
      if (other?.limiter.name === limiter.name && other.limiter.keyText(other.key) === check.key) {
        throw new FloodgateError(
          "FLOODGATE_DUPLICATE_NAME",
          `consumeAll was given ${shown(limiter.name)} twice with the same key. Give it once, with the sum of the costs.`,
        );
      }
    }
    return check;
  });
  const combined = (decisions: Decision[]): CombinedDecision => {
    const whole = combine(list, decisions);
    checks.forEach(({ limiter: { onEvent } }, i) => {
      const decision = whole.all[i] as Decision;
      if (onEvent !== undefined && isTold(decision, whole.allowed)) tell(onEvent, list[i]?.key as string, decision, false);
    });
    return whole;
  };
  return andThen<Decision[], CombinedDecision>(first.guard.consumeAll(list), combined) as Answer<CombinedDecision, M>;
}

/** @throws FloodgateError `FLOODGATE_INVALID_COST` unless it is a whole number of at least 1. */
export function checkCost(cost: unknown): number {
  if (typeof cost === "number" && Number.isSafeInteger(cost) && cost >= 1) return cost;
  throw new FloodgateError(
    "FLOODGATE_INVALID_COST",
    `A cost must be a whole number of at least 1, but was ${shown(cost)}. Write { cost: 1 }; to look without taking, use peek.`,
  );
}
