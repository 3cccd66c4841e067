import { chargedAll } from "../limits/all-or-nothing.js";
import { type Charge, ChargeRecord, charged, chargeOf, owned } from "../limits/charge.js";
import type { Decision } from "../limits/decision.js";
import { type EventListener, listenerOf } from "../limits/events.js";
import type { Limit } from "../limits/limit.js";
import { FloodgateError, shown } from "../support/errors.js";
import { andThen, isPromise } from "../support/promises.js";
import { type Breaker, breakerOf } from "./breaker.js";
import { ChargingStore } from "./charging-store.js";
import { Deadlines, latestMs, msUntil } from "./deadlines.js";
import { checkOnStoreError, checkTimeout, type FailureOptions } from "./failure-options.js";
import { FallbackLimits } from "./fallback.js";
import { runningMs } from "./running-clock.js";
import { type Answer, type Check, type Mode, type Store, scopeOf } from "./store.js";
import { type AskedStore, Blind, type Substitute } from "./substitute.js";
import { consumeBesideZero, hasZero, zeroDecision } from "./zero-limit.js";

/** How limiters and middlewares ask a store. */
export interface Guard<M extends Mode = Mode> extends Store<M> {
  readonly scope: object;
  /** How long a decision waits for the store; 0 if the store answers at once. */
  readonly timeoutMs: number;
  /** What decides while the store is away, if it is another store. */
  readonly fallback: FallbackLimits | undefined;
  /** Tells the listener about the circuit breaker. Call it after setup: a failed setup would leak it. */
  listen(): void;
  /** Stops telling. */
  close(): void;
  /** Waits for an answer, no longer than this. */
  atMost<T>(timeoutMs: number, pending: PromiseLike<T>): PromiseLike<T>;
}

/**
 * Asks a store so that a decision comes in time whatever becomes of it: what the store cannot decide, or not within
 * `timeoutMs`, its substitute decides. What is no decision (a refund, a settlement, a reset) fails as the store does, in time too, and is
 * asked whatever the breaker says.
 */
export class StoreGuard<M extends Mode> implements Guard<M> {
  readonly mode: M;
  readonly scope: object;
  readonly sharedAs: string | undefined;
  /** What limits where the store fails, if anything does. */
  readonly fallback: FallbackLimits | undefined;
  readonly #store: Store<M>;
  readonly timeoutMs: number;
  readonly #breaker: Breaker;
  readonly #substitute: Substitute;
  readonly #onEvent: EventListener | undefined;
  readonly #deadlines = new Deadlines();
  #leave: () => void = () => undefined;

  constructor(
    store: Store<M>,
    breaker: Breaker,
    options: { timeoutMs: number; substitute: Substitute; onEvent: EventListener | undefined },
  ) {
    this.mode = store.mode;
    this.scope = scopeOf(store);
    this.sharedAs = store.sharedAs;
    this.#store = store;
    this.timeoutMs = options.timeoutMs;
    this.#breaker = breaker;
    this.#substitute = options.substitute;
    this.fallback = options.substitute instanceof FallbackLimits ? options.substitute : undefined;
    this.#onEvent = listenerOf(options.onEvent);
  }

  /** Tells of the breaker until it is closed. To be called once the set-up is through: who is refused has nobody to close it. */
  listen(): void {
    if (this.#onEvent !== undefined) this.#leave = this.#breaker.listen(this.#onEvent);
  }

  /** Listens to the breaker no more. */
  close(): void {
    this.#leave();
  }

  consume(limit: Limit, key: string, cost: number): Answer<Decision, M> {
    if (limit.policy.quota === 0) return this.#answer(() => zeroDecision(limit, cost));
    return this.#decide(
      [{ limit, key, cost }],
      (timeoutMs) => this.#store.consume(limit, key, cost, timeoutMs),
      (substitute) => substitute.consume(limit, key, cost),
      (made) => (made.allowed ? charged(made, limit, key, this) : owned(made)),
    );
  }

  consumeAll(checks: readonly Check[]): Answer<Decision[], M> {
    if (hasZero(checks)) return this.#answer(() => consumeBesideZero(this, checks));
    return this.#decide(
      checks,
      (timeoutMs) => this.#store.consumeAll(checks, timeoutMs),
      (substitute) => substitute.consumeAll(checks),
      (made) => chargedAll(checks, made, this),
    );
  }

  peek(limit: Limit, key: string): Answer<Decision, M> {
    if (limit.policy.quota === 0) return this.#answer(() => zeroDecision(limit, 1));
    return this.#decide(
      [{ limit, key, cost: 1 }],
      (timeoutMs) => this.#store.peek(limit, key, timeoutMs),
      (substitute) => substitute.peek(limit, key),
      owned,
    );
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number): Answer<number, M> {
    if (charge instanceof ChargeRecord && charge.tally !== undefined) {
      const store = this.#until(runningMs() + this.timeoutMs);
      return this.#answer(() => this.#waited(this.#substitute.settle(limit, key, charge, cost, store)));
    }
    return this.#inTime(this.timeoutMs, (timeoutMs) => this.#store.settle(limit, key, charge, cost, timeoutMs));
  }

  reset(limit: Limit, key: string): Answer<void, M> {
    this.#substitute.reset(limit, key);
    return this.#inTime(this.timeoutMs, (timeoutMs) => this.#store.reset(limit, key, timeoutMs));
  }

  #decide<T extends Decision | Decision[]>(
    checks: readonly Check[],
    ask: (timeoutMs: number) => Answer<T, M>,
    decide: (substitute: Substitute) => T,
    charge: (made: T) => T,
  ): Answer<T, M> {
    const period = this.#breaker.admits(this.timeoutMs);
    if (period === 0) return this.#answer(() => this.#instead(decide));
    const done = (value: T): T => {
      if (!isDecided(value)) return fault(wrongAnswer(value));
      this.#breaker.succeeded(period);
      return charge(value);
    };
    const fault = (error: unknown): T => {
      this.#failed(period, error);
      return this.#instead(decide);
    };
    let answer: T | PromiseLike<T>;
    try {
      answer = this.#ask(checks, ask) as T | PromiseLike<T>;
    } catch (error) {
      return this.#answer(() => fault(error));
    }
    return (isPromise(answer) ? answer.then(done, fault) : done(answer)) as Answer<T, M>;
  }

  /** Asks the store, once it has been told what these keys have used while it was away: all of that in time. */
  #ask<T>(checks: readonly Check[], ask: (timeoutMs: number) => Answer<T, M>): Answer<T, M> {
    if (!this.#substitute.owes) return this.#inTime(this.timeoutMs, ask);
    const deadlineMs = runningMs() + this.timeoutMs;
    const told = this.#substitute.handOver(checks, () => this.#until(deadlineMs));
    return andThen<void, T>(this.#waited(told), () => this.#inTime(msUntil(deadlineMs), ask)) as Answer<T, M>;
  }

  /** The store for somebody who waits until then, however often it is asked. */
  #until(deadlineMs: number): AskedStore {
    return {
      consume: (limit, key, cost) => this.#inTime(msUntil(deadlineMs), (timeoutMs) => this.#store.consume(limit, key, cost, timeoutMs)),
      settle: (limit, key, charge, cost) =>
        this.#inTime(msUntil(deadlineMs), (timeoutMs) => this.#store.settle(limit, key, charge, cost, timeoutMs)),
    };
  }

  /** What may wait for a store that is being told already, by a limiter that waits longer. */
  #waited<T>(answer: T | PromiseLike<T>): T | PromiseLike<T> {
    return isPromise(answer) ? this.atMost(this.timeoutMs, answer) : answer;
  }

  #inTime<T>(timeoutMs: number, ask: (timeoutMs: number) => Answer<T, M>): Answer<T, M> {
    const answer = ask(timeoutMs);
    if (!isPromise(answer) || this.#store.keepsDeadlines === true) return answer;
    return this.atMost(timeoutMs, answer as PromiseLike<T>) as Answer<T, M>;
  }

  /** Waits for an answer of the store, no longer than this. */
  atMost<T>(timeoutMs: number, pending: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const waiter = {
        deadlineMs: runningMs() + timeoutMs,
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

  /** Where the substitute fails too, the request passes: two faults of ours are none of its. */
  #instead<T extends Decision | Decision[]>(decide: (substitute: Substitute) => T): T {
    try {
      const made = decide(this.#substitute);
      for (const decision of [made].flat() as Decision[]) {
        const charge = chargeOf(decision);
        if (charge instanceof ChargeRecord) charge.guard = this;
      }
      return made;
    } catch (error) {
      this.#onEvent?.({ type: "store-error", error });
      return decide(new Blind(true, this.#breaker));
    }
  }

  #failed(period: number, error: unknown): void {
    this.#onEvent?.({ type: "store-error", error });
    const code = error instanceof FloodgateError ? error.code : undefined;
    // A store that reports a foreign value under one key works. A timeout in our own queue says nothing about the store.
    if (code === "FLOODGATE_FOREIGN_VALUE") this.#breaker.succeeded(period);
    else if (code !== "FLOODGATE_QUEUE_TIMEOUT") this.#breaker.failed(period, error);
  }

  /** What is made in this process, and how that fails, as the store would answer it. */
  #answer<T>(make: () => T | PromiseLike<T>): Answer<T, M> {
    return (this.mode === "sync" ? make() : new Promise<T>((resolve) => resolve(make()))) as Answer<T, M>;
  }
}

function timeoutError(timeoutMs: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_STORE_TIMEOUT",
    `The store did not answer within ${timeoutMs} ms. Look at what it runs on, or raise \`timeoutMs\`.`,
  );
}

/** Whether a store of somebody else's has decided at all. */
function isDecided(answer: unknown): boolean {
  return Array.isArray(answer) ? answer.every(isDecision) : isDecision(answer);
}

function isDecision(answer: unknown): boolean {
  const { allowed, policy } = (answer ?? {}) as { readonly allowed?: unknown; readonly policy?: unknown };
  return typeof allowed === "boolean" && typeof policy === "object";
}

function wrongAnswer(answer: unknown): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_STORE_FAULT",
    `The store answered ${shown(answer)}, which is no decision. Run the suite of @floodgate/conformance on it.`,
  );
}

/** A store that answers at once is asked as it is, unless somebody says what to do where it fails. */
export function guardStore<M extends Mode>(
  where: string,
  store: Store<M>,
  options: FailureOptions & { onEvent?: EventListener | undefined },
): Guard<M> {
  const { onStoreError, onEvent } = options;
  const timeoutMs = checkTimeout(where, options.timeoutMs);
  const when = checkOnStoreError(where, onStoreError, store);
  if (store.mode === "sync" && onStoreError === undefined) return new ChargingStore(store as Store<"sync">) as Guard<Mode> as Guard<M>;
  const breaker = breakerOf(store);
  const substitute =
    typeof when === "string" ? new Blind(when === "allow", breaker) : FallbackLimits.of(when.store, when.processes, breaker);
  return new StoreGuard(store, breaker, { timeoutMs, substitute, onEvent });
}
