import { chargeable, withCharge } from "../algorithms/decision.js";
import { nothingReserved } from "../decide/charge.js";
import { type Check, type CombinedDecision, combine, type Decision, type Limit } from "../decide/decision.js";
import { BaseGuard, DirectGuard, type OwnGuard } from "../decide/guard.js";
import { type Answer, checkStore, type Decided, isRedisClient, type Mode, type Store, scopeOf } from "../decide/store.js";
import type { EventListener } from "../events/events.js";
import { activeListener, listenerOf } from "../events/listeners.js";
import { atPath, FloodgateError, invalidOption, shown, wrongOption } from "../support/errors.js";
import { checkOptions, didYouMean, wholeNumber } from "../support/options.js";
import { andThen, isPromise, type Promised, runInBackground } from "../support/promises.js";
import { type Breakers, breakersOf } from "./breaker.js";
import { atMost, msUntil, unblockedMs } from "./deadlines.js";
import { type DeadlineStore, type FallbackDecider, type FallbackUser, LocalFallback, NoFallback } from "./fallback.js";

/** A store in this process that decides while the main store is down. */
export interface Fallback {
  readonly store: Store<"sync">;
  /** The part of each limit that this process may use: `1 / n` for n processes. Default 1. */
  readonly share?: number;
}

/**
 * What happens to a request that the store cannot decide: `"allow"` lets it pass, `"deny"` answers 503, and a fallback store decides by
 * itself. A fallback store must be synchronous, like `memoryStore()`.
 */
export type OnStoreError = "allow" | "deny" | Store<"sync"> | Fallback;

/** The options of limiters and middlewares for a store that fails. */
export interface FailureOptions {
  /**
   * The maximum time of a decision in milliseconds, for asynchronous stores. Default 100. Time in which the event loop of this process is
   * blocked does not count, up to 10 seconds for each decision.
   */
  timeoutMs?: number;
  /**
   * What happens to a request that the store cannot decide. Default `"allow"`. Without this option, an error of a synchronous store is an
   * error of the request.
   */
  onStoreError?: OnStoreError;
}

export const failureOptionNames: readonly string[] = ["timeoutMs", "onStoreError"];

/**
 * The guard of a store that may fail: calls it with a deadline and a circuit breaker. If the store fails, or does not answer within
 * `timeoutMs`, the fallback decides. Refunds, settlements, resets and inspections are not decisions: they ignore the breaker, and fail if
 * the store fails.
 */
export class StoreGuard<M extends Mode> extends BaseGuard<M> implements OwnGuard<M>, FallbackUser {
  readonly fallback: LocalFallback | undefined;
  readonly #breakers: Breakers;
  readonly #decider: FallbackDecider;
  readonly #onEvent: EventListener | undefined;
  #leave: (() => void) | undefined;

  constructor(store: Store<M>, timeoutMs: number, decider: FallbackDecider, onEvent: EventListener | undefined) {
    super(store, timeoutMs);
    this.#breakers = breakersOf(store);
    this.#decider = decider;
    this.fallback = decider instanceof LocalFallback ? decider : undefined;
    this.#onEvent = listenerOf(onEvent);
  }

  listen(): void {
    if (this.#onEvent !== undefined) this.#leave = this.#breakers.listen(this.#onEvent);
  }

  close(): void {
    this.#leave?.();
    // What is not given back ends by itself, so a failure needs no handling.
    runInBackground(
      () => this.store.releaseLeases?.(),
      () => undefined,
    );
  }

  consume(limit: Limit, key: string, cost: number): Decided<Decision, M> {
    return this.#call(consuming, { limit, key, cost }) as Decided<Decision, M>;
  }

  decide(checks: readonly Check[]): Decided<CombinedDecision, M> {
    const first = checks[0] as Check;
    if (checks.length > 1 || first.dryRun === true) return this.#call(deciding, checks) as Decided<CombinedDecision, M>;
    return andThen<Decision, CombinedDecision>(this.#call(consuming, first), (decision) => ({
      allowed: decision.allowed || first.shadow === true,
      decision,
      all: [decision],
    })) as Decided<CombinedDecision, M>;
  }

  peek(limit: Limit, key: string): Decided<Decision, M> {
    return this.#call(peeking, { limit, key, cost: 1 }) as Decided<Decision, M>;
  }

  /** Asks the store as a decision does: with the breaker, after a hand-over, and with the fallback if it fails. */
  charge(limit: Limit, key: string, cost: number): Decided<number, M> {
    return this.#call(charging, { limit, key, cost }) as Decided<number, M>;
  }

  settleInTime(settle: (store: DeadlineStore) => Promised<number>): Answer<number, M> {
    const store = this.#withDeadline(unblockedMs() + this.timeoutMs);
    const settled = (): Promised<number> => this.#bounded(settle(store));
    return (this.mode === "sync" ? settled() : new Promise((resolve) => resolve(settled()))) as Answer<number, M>;
  }

  override reset(limit: Limit, key: string): Answer<void, M> {
    this.fallback?.reset(limit, key);
    return super.reset(limit, key);
  }

  /** Makes a call if the breaker admits it. If the store fails, the fallback answers. */
  #call<Of extends Checks, Made, Result>(call: StoreCall<Of, Made, Result>, of: Of): Promised<Result> {
    const circuit = this.#breakers.of(of);
    const period = circuit.admits(this.timeoutMs);
    if (period === 0) return this.#fallBack(call, of);
    const failed = (error: unknown): Result => {
      activeListener(this.#onEvent)?.({ type: "store-error", error });
      const code = error instanceof FloodgateError ? error.code : undefined;
      // A store that reports a foreign value under one key works. A timeout in our own queue says nothing about the store.
      if (code === "FLOODGATE_FOREIGN_VALUE") circuit.succeeded(period);
      else if (code !== "FLOODGATE_QUEUE_TIMEOUT") circuit.failed(period, error);
      return this.#fallBack(call, of);
    };
    const finished = (made: Made, isCached = false): Result => {
      if (!call.isAnswer(made)) {
        const message = `The store answered ${shown(made)}, which is not a decision. Run the suite of @floodgate/conformance on it.`;
        return failed(new FloodgateError("FLOODGATE_STORE_FAULT", message));
      }
      if (isCached) circuit.unused(period);
      else circuit.succeeded(period);
      return call.finish(made, of, this);
    };
    let answer: Promised<Made>;
    try {
      answer = this.fallback?.hasUnreported
        ? this.#askAfterHandOver(call, of, this.fallback)
        : this.inTime(call.ask(this.store, of, this.timeoutMs), this.timeoutMs);
    } catch (error) {
      return failed(error);
    }
    return isPromise(answer) ? answer.then(finished, failed) : finished(answer, this.store.answersFromCache === true);
  }

  /** Reports the usage of these keys first. Both calls have one timeout. */
  #askAfterHandOver<Of extends Checks, Made, Result>(call: StoreCall<Of, Made, Result>, of: Of, fallback: LocalFallback): Promised<Made> {
    const deadlineMs = unblockedMs() + this.timeoutMs;
    const handOver = fallback.handOver([of].flat(), () => this.#withDeadline(deadlineMs));
    return andThen<void, Made>(this.#bounded(handOver), () => this.#until(deadlineMs, (leftMs) => call.ask(this.store, of, leftMs)));
  }

  /** The store, with one deadline for all calls. */
  #withDeadline(deadlineMs: number): DeadlineStore {
    return {
      consume: (limit, key, cost) => this.#until(deadlineMs, (leftMs) => this.store.consume(limit, key, cost, leftMs)),
      settle: (limit, key, charge, cost) => this.#until(deadlineMs, (leftMs) => this.store.settle(limit, key, charge, cost, leftMs)),
    };
  }

  #until<A>(deadlineMs: number, ask: (leftMs: number) => A): A {
    const leftMs = msUntil(deadlineMs);
    return this.inTime(ask(leftMs), leftMs);
  }

  /** Bounds the answer of a store that keeps no deadlines. */
  protected inTime<A>(answer: A, timeoutMs: number = this.timeoutMs): A {
    return this.store.keepsDeadlines === true ? answer : (this.#bounded(answer, timeoutMs) as A);
  }

  /** Bounds an answer, such as a shared hand-over, by our timeout. */
  #bounded<T>(answer: Promised<T>, timeoutMs = this.timeoutMs): Promised<T> {
    if (!isPromise(answer)) return answer;
    return atMost(timeoutMs, answer, () => {
      const message = `The store did not answer within ${this.timeoutMs} ms. Check its server and network, or raise \`timeoutMs\`.`;
      return new FloodgateError("FLOODGATE_STORE_TIMEOUT", message);
    });
  }

  /** Answers without the store. If the fallback fails too, the request passes. */
  #fallBack<Of extends Checks, Made, Result>(call: StoreCall<Of, Made, Result>, of: Of): Result {
    try {
      return call.fallBack(this.#decider, of, this);
    } catch (error) {
      activeListener(this.#onEvent)?.({ type: "store-error", error });
      return call.fallBack(new NoFallback(true, this.#breakers), of, this);
    }
  }
}

/** What a call is about: one limit, or several in one step. */
type Checks = Check | readonly Check[];

/** A call of the store that a fallback can answer. Constants, because closures for each step of each call would cost more. */
interface StoreCall<Of extends Checks, Made, Result> {
  ask(store: Store, of: Of, timeoutMs: number): Promised<Made>;
  isAnswer(answer: unknown): boolean;
  finish(made: Made, of: Of, guard: FallbackUser): Result;
  fallBack(decider: FallbackDecider, of: Of, guard: FallbackUser): Result;
}

const consuming: StoreCall<Check, Decision, Decision> = {
  ask: (store, { limit, key, cost }, timeoutMs) => store.consume(limit, key, cost, timeoutMs),
  isAnswer: isDecision,
  finish: (made, { limit, key }, guard) => (made.allowed ? withCharge(made, limit, key, guard) : chargeable(made)),
  fallBack: (decider, check, guard) => decider.decide([check], guard).all[0] as Decision,
};

const deciding: StoreCall<readonly Check[], Decision[], CombinedDecision> = {
  ask: (store, checks, timeoutMs) => store.consumeAll(checks, timeoutMs),
  isAnswer: (answer) => Array.isArray(answer) && answer.every(isDecision),
  finish: (decisions, checks, guard) => combine(checks, decisions, guard),
  fallBack: (decider, checks, guard) => decider.decide(checks, guard),
};

const peeking: StoreCall<Check, Decision, Decision> = {
  ask: (store, { limit, key }, timeoutMs) => store.peek(limit, key, timeoutMs),
  isAnswer: isDecision,
  finish: (made) => chargeable(made),
  fallBack: (decider, { limit, key }) => decider.peek(limit, key),
};

const charging: StoreCall<Check, number, number> = {
  ask: (store, { limit, key, cost }, timeoutMs) => store.settle(limit, key, nothingReserved, cost, timeoutMs),
  isAnswer: (answer) => typeof answer === "number",
  finish: (units) => units,
  fallBack: (decider, { limit, key, cost }) => (decider instanceof LocalFallback ? decider.charge(limit, key, cost) : 0),
};

/** Whether the answer of a third-party store is a decision at all. */
function isDecision(answer: unknown): boolean {
  const { allowed, policy } = (answer ?? {}) as { readonly allowed?: unknown; readonly policy?: unknown };
  return typeof allowed === "boolean" && typeof policy === "object";
}

/** @throws FloodgateError if the timeout is invalid, or too long for a timer. */
function checkTimeout(where: string, timeoutMs: number | undefined): number {
  if (timeoutMs === undefined) return 100;
  if (wholeNumber(where, "timeoutMs", timeoutMs) < 2 ** 31) return timeoutMs;
  throw wrongOption(where, "timeoutMs", "less than 2^31 (a timer holds no more)", timeoutMs, "timeoutMs: 100");
}

function deciderOf(where: string, option: OnStoreError | undefined, failing: Store): FallbackDecider {
  if (option === undefined || option === "allow" || option === "deny") return new NoFallback(option !== "deny", breakersOf(failing));
  const what = `${where}: onStoreError`;
  if (typeof option !== "object" || option === null) {
    // An address may hold a password.
    const given = typeof option === "string" && /[:@]/.test(option) ? "an address" : shown(option);
    throw invalidOption(
      `${where}: \`onStoreError\` must be "allow", "deny" or a store that answers at once, but was ${given}.${didYouMean(option, ["allow", "deny"]) || " Write onStoreError: memoryStore()."}`,
    );
  }
  const isStore = "consume" in option || isRedisClient(option);
  if (!isStore) checkOptions(what, option, ["store", "share"], "onStoreError: { store: memoryStore(), share: 1 / 4 }");
  const { store, share } = (isStore ? { store: option } : option) as Fallback;
  const fallback = checkFallback(what, store, failing);
  return LocalFallback.of(fallback, share === undefined ? 1 : processesOf(what, share), breakersOf(failing));
}

function checkFallback(what: string, store: Store<"sync">, failing: Store): Store<"sync"> {
  if (isRedisClient(store) || checkStore(what, store).mode !== "sync") {
    throw invalidOption(`${what} takes a store in this process, which answers at once. Write onStoreError: memoryStore().`);
  }
  if (scopeOf(store) !== scopeOf(failing)) return store;
  throw invalidOption(`${what} must be another store than \`store\`. Write onStoreError: memoryStore().`);
}

function processesOf(what: string, share: unknown): number {
  const processes = typeof share === "number" ? Math.round(1 / share) : 0;
  if (processes >= 1 && Math.abs((share as number) * processes - 1) < 1e-9) return processes;
  throw wrongOption(what, "share", "1 / n for n processes", share, "share: 1 / 4 for four processes", []);
}

/** Wraps a store for calls. A synchronous store gets no deadline and no breaker unless `onStoreError` is given. */
export function guardStore<M extends Mode>(
  where: string,
  store: Store<M>,
  options: FailureOptions & { onEvent?: EventListener | undefined },
): OwnGuard<M> {
  const { onStoreError, onEvent } = options;
  const timeoutMs = checkTimeout(where, options.timeoutMs);
  if (store.mode === "sync" && onStoreError === undefined) return new DirectGuard(store as Store<"sync">) as OwnGuard<Mode> as OwnGuard<M>;
  const decider = atPath(["onStoreError"], () => deciderOf(where, onStoreError, store));
  return new StoreGuard(store, timeoutMs, decider, onEvent);
}
