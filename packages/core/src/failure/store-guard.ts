import type { BlockKind, Charge } from "../algorithms/algorithm.js";
import { asOwn, charged } from "../algorithms/decision.js";
import { nothingReserved } from "../decide/charge.js";
import { type CombinedDecision, combine, combinedOf, type Decision } from "../decide/decision.js";
import { DirectGuard, type Fallback, type Guard } from "../decide/guard.js";
import type { Check, Limit } from "../decide/limit.js";
import {
  type Answer,
  type Blocked,
  type Decided,
  type Inspection,
  type Mode,
  renewingStore,
  type Store,
  scopeOf,
} from "../decide/store.js";
import type { EventListener } from "../events/events.js";
import { activeListener, listenerOf } from "../events/listeners.js";
import { FloodgateError, shown } from "../support/errors.js";
import { andThen, isPromise, type Promised, runInBackground } from "../support/promises.js";
import type { Circuit } from "./breaker.js";
import { type Breakers, breakersOf } from "./breakers.js";
import { Deadlines, latestMs, msUntil, unblockedMs } from "./deadlines.js";
import { checkOnStoreError, checkTimeout, type FailureOptions } from "./failure-options.js";
import { type DeadlineStore, type FallbackStore, type FallbackUser, NoFallback } from "./fallback-store.js";
import { LocalFallback } from "./local-fallback.js";

/**
 * The guard of a store that may fail: calls it with a deadline and a circuit breaker. If the store fails, or does not answer within
 * `timeoutMs`, the fallback decides. Refunds, settlements, resets and inspections are not decisions: they ignore the breaker, and fail if
 * the store fails.
 */
export class StoreGuard<M extends Mode> implements Guard<M>, FallbackUser {
  readonly mode: M;
  readonly scope: object;
  readonly dataId: string | undefined;
  readonly fallback: Fallback | undefined;
  readonly #store: Store<M>;
  readonly timeoutMs: number;
  readonly #breakers: Breakers;
  readonly #fallbackStore: FallbackStore;
  readonly #onEvent: EventListener | undefined;
  readonly #deadlines = new Deadlines();
  #leave: (() => void) | undefined;

  constructor(
    store: Store<M>,
    breakers: Breakers,
    options: { timeoutMs: number; fallbackStore: FallbackStore; onEvent: EventListener | undefined },
  ) {
    this.mode = store.mode;
    this.scope = scopeOf(store);
    this.dataId = store.dataId;
    this.#store = store;
    this.timeoutMs = options.timeoutMs;
    this.#breakers = breakers;
    this.#fallbackStore = options.fallbackStore;
    this.fallback = options.fallbackStore instanceof LocalFallback ? options.fallbackStore : undefined;
    this.#onEvent = listenerOf(options.onEvent);
  }

  listen(): void {
    if (this.#onEvent !== undefined) this.#leave = this.#breakers.listen(this.#onEvent);
  }

  close(): void {
    this.#leave?.();
    // What is not given back ends by itself, so a failure needs no handling.
    runInBackground(
      () => this.#store.releaseLeases?.(),
      () => undefined,
    );
  }

  consume(limit: Limit, key: string, cost: number): Decided<Decision, M> {
    return this.#call(consuming, { limit, key, cost });
  }

  decide(checks: readonly Check[]): Decided<CombinedDecision, M> {
    const first = checks[0] as Check;
    if (checks.length > 1 || first.dryRun === true) return this.#call(deciding, checks);
    const decided = this.#call(consuming, first);
    return andThen<Decision, CombinedDecision>(decided, (decision) => combinedOf(first, decision)) as Decided<CombinedDecision, M>;
  }

  peek(limit: Limit, key: string): Decided<Decision, M> {
    return this.#call(peeking, { limit, key, cost: 1 });
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number): Answer<number, M> {
    return this.#inTime(this.#store.settle(limit, key, charge, cost, this.timeoutMs));
  }

  /** Asks the store as a decision does: with the breaker, after a hand-over, and with the fallback if it fails. */
  charge(limit: Limit, key: string, cost: number): Decided<number, M> {
    return this.#call(charging, { limit, key, cost });
  }

  renew(limit: Limit, key: string, charge: Charge): Decided<Decision | undefined, M> {
    return this.#inTime(renewingStore(this.#store).renew(limit, key, charge, this.timeoutMs));
  }

  settleInTime(settle: (store: DeadlineStore) => number | PromiseLike<number>): Answer<number, M> {
    const store = this.#withDeadline(unblockedMs() + this.timeoutMs);
    const settled = (): number | PromiseLike<number> => this.#bounded(settle(store));
    return (this.mode === "sync" ? settled() : new Promise((resolve) => resolve(settled()))) as Answer<number, M>;
  }

  reset(limit: Limit, key: string): Answer<void, M> {
    this.#fallbackStore.reset(limit, key);
    return this.#inTime(this.#store.reset(limit, key, this.timeoutMs));
  }

  block(name: string, key: string, forMs: number, kind: BlockKind): Answer<Blocked, M> {
    return this.#inTime(this.#store.block(name, key, forMs, kind, this.timeoutMs));
  }

  unblock(name: string, key: string): Answer<void, M> {
    return this.#inTime(this.#store.unblock(name, key, this.timeoutMs));
  }

  keyState(limit: Limit, key: string): Answer<Inspection, M> {
    return this.#inTime(this.#store.keyState(limit, key, this.timeoutMs));
  }

  /** Makes a call if the breaker admits it. If the store fails, the fallback answers. */
  #call<Of extends Checks, Made, Result>(call: StoreCall<Of, Made, Result>, of: Of): Decided<Result, M> {
    const circuit = this.#breakers.of(of);
    const period = circuit.admits(this.timeoutMs);
    if (period === 0) return this.#fallBack(call, of) as Decided<Result, M>;
    let answer: Promised<Made>;
    try {
      answer = this.#fallbackStore.hasUnreported
        ? this.#askAfterHandOver(call, of)
        : this.#inTime(call.ask(this.#store, of, this.timeoutMs), this.timeoutMs);
    } catch (error) {
      return this.#fail(call, of, circuit, period, error) as Decided<Result, M>;
    }
    const result = isPromise(answer)
      ? answer.then(
          (made) => this.#finish(call, of, circuit, period, made, false),
          (error) => this.#fail(call, of, circuit, period, error),
        )
      : this.#finish(call, of, circuit, period, answer, this.#store.answersFromCache === true);
    return result as Decided<Result, M>;
  }

  #finish<Of extends Checks, Made, Result>(
    call: StoreCall<Of, Made, Result>,
    of: Of,
    circuit: Circuit,
    period: number,
    made: Made,
    isCached: boolean,
  ): Result {
    if (!call.isAnswer(made)) return this.#fail(call, of, circuit, period, wrongAnswer(made));
    if (isCached) circuit.unused(period);
    else circuit.succeeded(period);
    return call.finish(made, of, this);
  }

  #fail<Of extends Checks, Made, Result>(
    call: StoreCall<Of, Made, Result>,
    of: Of,
    circuit: Circuit,
    period: number,
    error: unknown,
  ): Result {
    activeListener(this.#onEvent)?.({ type: "store-error", error });
    const code = error instanceof FloodgateError ? error.code : undefined;
    // A store that reports a foreign value under one key works. A timeout in our own queue says nothing about the store.
    if (code === "FLOODGATE_FOREIGN_VALUE") circuit.succeeded(period);
    else if (code !== "FLOODGATE_QUEUE_TIMEOUT") circuit.failed(period, error);
    return this.#fallBack(call, of);
  }

  /** Reports the usage of these keys first. Both calls have one timeout. */
  #askAfterHandOver<Of extends Checks, Made, Result>(call: StoreCall<Of, Made, Result>, of: Of): Promised<Made> {
    const deadlineMs = unblockedMs() + this.timeoutMs;
    const handOver = this.#fallbackStore.handOver([of].flat(), () => this.#withDeadline(deadlineMs));
    return andThen<void, Made>(this.#bounded(handOver), () => {
      const leftMs = msUntil(deadlineMs);
      return this.#inTime(call.ask(this.#store, of, leftMs), leftMs);
    });
  }

  /** The store, with one deadline for all calls. */
  #withDeadline(deadlineMs: number): DeadlineStore {
    return {
      consume: (limit, key, cost) => {
        const leftMs = msUntil(deadlineMs);
        return this.#inTime(this.#store.consume(limit, key, cost, leftMs), leftMs);
      },
      settle: (limit, key, charge, cost) => {
        const leftMs = msUntil(deadlineMs);
        return this.#inTime(this.#store.settle(limit, key, charge, cost, leftMs), leftMs);
      },
    };
  }

  /** Bounds the answer of a store that keeps no deadlines. */
  #inTime<A>(answer: A, timeoutMs = this.timeoutMs): A {
    return this.#store.keepsDeadlines === true ? answer : (this.#bounded(answer, timeoutMs) as A);
  }

  /** Bounds an answer, such as a shared hand-over, by our timeout. */
  #bounded<T>(answer: Promised<T>, timeoutMs = this.timeoutMs): Promised<T> {
    return isPromise(answer) ? this.atMost(timeoutMs, answer) : answer;
  }

  atMost<T>(timeoutMs: number, pending: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiter = {
        deadlineMs: unblockedMs() + timeoutMs,
        latestMs: latestMs(timeoutMs),
        place: -1,
        expire: () => reject(timeoutError(this.timeoutMs)),
      };
      this.#deadlines.add(waiter);
      const settle =
        <V>(how: (value: V) => void) =>
        (value: V) => {
          this.#deadlines.delete(waiter);
          how(value);
        };
      pending.then(settle(resolve), settle(reject));
    });
  }

  /** Answers without the store. If the fallback fails too, the request passes. */
  #fallBack<Of extends Checks, Made, Result>(call: StoreCall<Of, Made, Result>, of: Of): Result {
    try {
      return call.fallBack(this.#fallbackStore, of, this);
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
  /** Whether the answer of a third-party store is one at all. */
  isAnswer(answer: unknown): boolean;
  finish(made: Made, of: Of, guard: FallbackUser): Result;
  fallBack(fallbackStore: FallbackStore, of: Of, guard: FallbackUser): Result;
}

const consuming: StoreCall<Check, Decision, Decision> = {
  ask: (store, { limit, key, cost }, timeoutMs) => store.consume(limit, key, cost, timeoutMs),
  isAnswer: isDecision,
  finish: (made, { limit, key }, guard) => (made.allowed ? charged(made, limit, key, guard) : asOwn(made)),
  fallBack: (fallbackStore, check, guard) => fallbackStore.decide([check], guard).all[0] as Decision,
};

const deciding: StoreCall<readonly Check[], Decision[], CombinedDecision> = {
  ask: (store, checks, timeoutMs) => store.consumeAll(checks, timeoutMs),
  isAnswer: (answer) => Array.isArray(answer) && answer.every(isDecision),
  finish: (decisions, checks, guard) => combine(checks, decisions, guard),
  fallBack: (fallbackStore, checks, guard) => fallbackStore.decide(checks, guard),
};

const peeking: StoreCall<Check, Decision, Decision> = {
  ask: (store, { limit, key }, timeoutMs) => store.peek(limit, key, timeoutMs),
  isAnswer: isDecision,
  finish: (made) => asOwn(made),
  fallBack: (fallbackStore, { limit, key }) => fallbackStore.peek(limit, key),
};

const charging: StoreCall<Check, number, number> = {
  ask: (store, { limit, key, cost }, timeoutMs) => store.settle(limit, key, nothingReserved, cost, timeoutMs),
  isAnswer: (answer) => typeof answer === "number",
  finish: (units) => units,
  fallBack: (fallbackStore, { limit, key, cost }) => fallbackStore.charge(limit, key, cost),
};

function timeoutError(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_STORE_TIMEOUT",
    `The store did not answer within ${timeoutMs} ms. Check its server and network, or raise \`timeoutMs\`.`,
  );
}

/** Whether the answer of a third-party store is a decision at all. */
function isDecision(answer: unknown): boolean {
  const { allowed, policy } = (answer ?? {}) as { readonly allowed?: unknown; readonly policy?: unknown };
  return typeof allowed === "boolean" && typeof policy === "object";
}

function wrongAnswer(answer: unknown): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_STORE_FAULT",
    `The store answered ${shown(answer)}, which is not a decision. Run the suite of @floodgate/conformance on it.`,
  );
}

/** Wraps a store for calls. A synchronous store gets no deadline and no breaker unless `onStoreError` is given. */
export function guardStore<M extends Mode>(
  where: string,
  store: Store<M>,
  options: FailureOptions & { onEvent?: EventListener | undefined },
): Guard<M> {
  const { onStoreError, onEvent } = options;
  const timeoutMs = checkTimeout(where, options.timeoutMs);
  const when = checkOnStoreError(where, onStoreError, store);
  if (store.mode === "sync" && onStoreError === undefined) return new DirectGuard(store as Store<"sync">) as Guard<Mode> as Guard<M>;
  const breakers = breakersOf(store);
  const fallbackStore =
    typeof when === "string" ? new NoFallback(when === "allow", breakers) : LocalFallback.of(when.store, when.processes, breakers);
  return new StoreGuard(store, breakers, { timeoutMs, fallbackStore, onEvent });
}
