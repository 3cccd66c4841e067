import type { BlockKind, Charge } from "../algorithms/algorithm.js";
import { asOwn, charged } from "../algorithms/decision.js";
import { nothingReserved } from "../decide/charge.js";
import { type CombinedDecision, combine, type Decision } from "../decide/decision.js";
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
import { andThen, isPromise, runInBackground } from "../support/promises.js";
import type { Circuit } from "./breaker.js";
import { type Breakers, breakersOf } from "./breakers.js";
import { Deadlines, latestMs, msUntil } from "./deadlines.js";
import { checkOnStoreError, checkTimeout, type FailureOptions } from "./failure-options.js";
import { type DeadlineStore, type FallbackStore, type FallbackUser, NoFallback } from "./fallback-store.js";
import { LocalFallback } from "./local-fallback.js";
import { unblockedMs } from "./running-clock.js";

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

  /** The way of nearly every request. It does what `#call` does, without a closure for each step. */
  consume(limit: Limit, key: string, cost: number): Decided<Decision, M> {
    if (this.#fallbackStore.hasUnreported) return this.#consumeAfterHandOver(limit, key, cost);
    const circuit = this.#breakers.ofKey(key);
    const period = circuit.admits(this.timeoutMs);
    if (period === 0) return this.#fallBack((fallback) => fallback.consume(limit, key, cost, this));
    let answer: Decision | PromiseLike<Decision>;
    try {
      answer = this.#store.consume(limit, key, cost, this.timeoutMs) as Decision | PromiseLike<Decision>;
    } catch (error) {
      return this.#consumeFailed(circuit, period, error, limit, key, cost);
    }
    if (!isPromise(answer)) return this.#consumed(circuit, period, answer, limit, key, cost, this.#store.answersFromCache);
    const pending = this.#store.keepsDeadlines === true ? answer : this.atMost(this.timeoutMs, answer);
    return pending.then(
      (made) => this.#consumed(circuit, period, made, limit, key, cost),
      (error) => this.#consumeFailed(circuit, period, error, limit, key, cost),
    ) as Decided<Decision, M>;
  }

  #consumed(circuit: Circuit, period: number, made: Decision, limit: Limit, key: string, cost: number, isCached = false): Decision {
    if (!isDecision(made)) return this.#consumeFailed(circuit, period, wrongAnswer(made), limit, key, cost);
    if (isCached) circuit.unused(period);
    else circuit.succeeded(period);
    return made.allowed ? charged(made, limit, key, this) : asOwn(made);
  }

  #consumeFailed(circuit: Circuit, period: number, error: unknown, limit: Limit, key: string, cost: number): Decision {
    this.#failed(circuit, period, error);
    return this.#fallBack((fallback) => fallback.consume(limit, key, cost, this));
  }

  #consumeAfterHandOver(limit: Limit, key: string, cost: number): Decided<Decision, M> {
    return this.#call<Decision, Decision>(
      [{ limit, key, cost }],
      (timeoutMs) => this.#store.consume(limit, key, cost, timeoutMs),
      isDecision,
      (made) => (made.allowed ? charged(made, limit, key, this) : asOwn(made)),
      (fallback) => fallback.consume(limit, key, cost, this),
    );
  }

  decide(checks: readonly Check[]): Decided<CombinedDecision, M> {
    return this.#call<Decision[], CombinedDecision>(
      checks,
      (timeoutMs) => this.#store.consumeAll(checks, timeoutMs),
      (answer) => Array.isArray(answer) && answer.every(isDecision),
      (decisions) => combine(checks, decisions, (made, { limit, key }) => charged(made, limit, key, this)),
      (fallback) => fallback.decide(checks, this),
    );
  }

  peek(limit: Limit, key: string): Decided<Decision, M> {
    return this.#call<Decision, Decision>(
      [{ limit, key, cost: 1 }],
      (timeoutMs) => this.#store.peek(limit, key, timeoutMs),
      isDecision,
      asOwn,
      (fallback) => fallback.peek(limit, key),
    );
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number): Answer<number, M> {
    return this.#inTime(this.timeoutMs, (timeoutMs) => this.#store.settle(limit, key, charge, cost, timeoutMs));
  }

  /** Asks the store as a decision does: with the breaker, after a hand-over, and with the fallback if it fails. */
  charge(limit: Limit, key: string, cost: number): Decided<number, M> {
    return this.#call<number, number>(
      [{ limit, key, cost }],
      (timeoutMs) => this.#store.settle(limit, key, nothingReserved, cost, timeoutMs),
      (answer) => typeof answer === "number",
      (units) => units,
      (fallback) => fallback.charge(limit, key, cost),
    );
  }

  renew(limit: Limit, key: string, charge: Charge): Decided<Decision | undefined, M> {
    return this.#inTime<Decision | undefined, Decided<Decision | undefined, M>>(this.timeoutMs, (timeoutMs) =>
      renewingStore(this.#store).renew(limit, key, charge, timeoutMs),
    );
  }

  settleInTime(settle: (store: DeadlineStore) => number | PromiseLike<number>): Answer<number, M> {
    const store = this.#withDeadline(unblockedMs() + this.timeoutMs);
    const settled = (): number | PromiseLike<number> => this.#bounded(settle(store));
    return (this.mode === "sync" ? settled() : new Promise((resolve) => resolve(settled()))) as Answer<number, M>;
  }

  reset(limit: Limit, key: string): Answer<void, M> {
    this.#fallbackStore.reset(limit, key);
    return this.#inTime(this.timeoutMs, (timeoutMs) => this.#store.reset(limit, key, timeoutMs));
  }

  block(name: string, key: string, forMs: number, kind: BlockKind): Answer<Blocked, M> {
    return this.#inTime(this.timeoutMs, (timeoutMs) => this.#store.block(name, key, forMs, kind, timeoutMs));
  }

  unblock(name: string, key: string): Answer<void, M> {
    return this.#inTime(this.timeoutMs, (timeoutMs) => this.#store.unblock(name, key, timeoutMs));
  }

  keyState(limit: Limit, key: string): Answer<Inspection, M> {
    return this.#inTime(this.timeoutMs, (timeoutMs) => this.#store.keyState(limit, key, timeoutMs));
  }

  /**
   * Calls the store if the breaker admits it.
   * @param isAnswer whether the answer of a third-party store is one at all.
   * @param finish makes the result of an answer.
   * @param fallBack makes the result without the store.
   */
  #call<Made, Result>(
    checks: readonly Check[],
    ask: (timeoutMs: number) => Decided<Made, M>,
    isAnswer: (answer: unknown) => boolean,
    finish: (made: Made) => Result,
    fallBack: (fallbackStore: FallbackStore) => Result,
  ): Decided<Result, M> {
    const circuit = this.#breakers.of(checks);
    const period = circuit.admits(this.timeoutMs);
    if (period === 0) return this.#fallBack(fallBack) as Decided<Result, M>;
    const done = (made: Made, isCached = false): Result => {
      if (!isAnswer(made)) return failed(wrongAnswer(made));
      if (isCached) circuit.unused(period);
      else circuit.succeeded(period);
      return finish(made);
    };
    const failed = (error: unknown): Result => {
      this.#failed(circuit, period, error);
      return this.#fallBack(fallBack);
    };
    let answer: Made | PromiseLike<Made>;
    try {
      answer = this.#ask(checks, ask) as Made | PromiseLike<Made>;
    } catch (error) {
      return failed(error) as Decided<Result, M>;
    }
    return (isPromise(answer) ? answer.then((made) => done(made), failed) : done(answer, this.#store.answersFromCache)) as Decided<
      Result,
      M
    >;
  }

  /** Calls the store after the hand-over of these keys, both within one timeout. */
  #ask<T>(checks: readonly Check[], ask: (timeoutMs: number) => Decided<T, M>): Decided<T, M> {
    if (!this.#fallbackStore.hasUnreported) return this.#inTime(this.timeoutMs, ask);
    const deadlineMs = unblockedMs() + this.timeoutMs;
    const handOver = this.#fallbackStore.handOver(checks, () => this.#withDeadline(deadlineMs));
    return andThen<void, T>(this.#bounded(handOver), () => this.#inTime(msUntil(deadlineMs), ask)) as Decided<T, M>;
  }

  /** The store, with one deadline for all calls. */
  #withDeadline(deadlineMs: number): DeadlineStore {
    return {
      consume: (limit, key, cost) => this.#inTime(msUntil(deadlineMs), (timeoutMs) => this.#store.consume(limit, key, cost, timeoutMs)),
      settle: (limit, key, charge, cost) =>
        this.#inTime(msUntil(deadlineMs), (timeoutMs) => this.#store.settle(limit, key, charge, cost, timeoutMs)),
    };
  }

  /** Bounds an answer, such as a shared hand-over, by our timeout. */
  #bounded<T>(answer: T | PromiseLike<T>, timeoutMs = this.timeoutMs): T | PromiseLike<T> {
    return isPromise(answer) ? this.atMost(timeoutMs, answer) : answer;
  }

  #inTime<T, A extends Decided<T, M>>(timeoutMs: number, ask: (timeoutMs: number) => A): A {
    const answer = ask(timeoutMs);
    return this.#store.keepsDeadlines === true ? answer : (this.#bounded<T>(answer as T | PromiseLike<T>, timeoutMs) as A);
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

  /** Decides without the store. If the fallback fails too, the request passes. */
  #fallBack<Result>(decide: (fallbackStore: FallbackStore) => Result): Result {
    try {
      return decide(this.#fallbackStore);
    } catch (error) {
      activeListener(this.#onEvent)?.({ type: "store-error", error });
      return decide(new NoFallback(true, this.#breakers));
    }
  }

  #failed(circuit: Circuit, period: number, error: unknown): void {
    activeListener(this.#onEvent)?.({ type: "store-error", error });
    const code = error instanceof FloodgateError ? error.code : undefined;
    // A store that reports a foreign value under one key works. A timeout in our own queue says nothing about the store.
    if (code === "FLOODGATE_FOREIGN_VALUE") circuit.succeeded(period);
    else if (code !== "FLOODGATE_QUEUE_TIMEOUT") circuit.failed(period, error);
  }
}

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
