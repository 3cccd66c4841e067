import type { BlockKind, Charge, Settler } from "../algorithms/algorithm.js";
import { chargeable, withCharge } from "../algorithms/decision.js";
import type { Policy } from "../algorithms/registry.js";
import { nothingReserved } from "./charge.js";
import { type Check, type CombinedDecision, combine, type Decision, type Limit } from "./decision.js";
import { type Answer, type Blocked, type Decided, type Inspection, type Mode, renewingStore, type Store, scopeOf } from "./store.js";

/**
 * How limiters and middlewares call a store. A guard attaches the charge to each decision that charged a key. It combines the decisions of
 * one atomic step, and so decides whether the request passes. `DirectGuard` does no more than this. `StoreGuard` adds the
 * deadline, breaker and fallback of a store that may fail. A guard never sees limits of 0: see `zero-limits.ts`. Bans count rejections
 * around a guard: see `decideWithBans`.
 */
export interface Guard<M extends Mode = Mode> extends Omit<Store<M>, "consumeAll" | "settle" | "renew">, Settler<Policy> {
  readonly scope: object;
  readonly dataId: string | undefined;
  /** How long a decision waits for the store, in milliseconds; 0 if the store answers at once. */
  readonly timeoutMs: number;
  /** The fallback store of `onStoreError`, by the identity of its data; undefined without one. A limit has its name there too. */
  readonly fallback: { readonly scope: object } | undefined;
  /** Decides a request under its limits in one atomic step: all that allow are charged, or none is. A single one is decided as by `consume`. */
  decide(checks: readonly Check[]): Decided<CombinedDecision, M>;
  /** Records usage that has happened: see `Limiter.charge`. */
  charge(limit: Limit, key: string, cost: number): Decided<number, M>;
}

/** A guard, for the limiter or middleware that has made it. */
export interface OwnGuard<M extends Mode = Mode> extends Guard<M> {
  /** Sends the breaker's events to `onEvent` until `close`. Call it when setup has succeeded: a failed setup never calls `close`. */
  listen(): void;
  /** Stops the breaker's events, and gives back what was charged ahead. */
  close(): void;
}

/** The calls of a store that are no decisions. Every guard makes them in the same way. */
export abstract class BaseGuard<M extends Mode> {
  readonly mode: M;
  readonly scope: object;
  readonly dataId: string | undefined;
  readonly timeoutMs: number;
  protected readonly store: Store<M>;

  constructor(store: Store<M>, timeoutMs: number) {
    this.mode = store.mode;
    this.scope = scopeOf(store);
    this.dataId = store.dataId;
    this.timeoutMs = timeoutMs;
    this.store = store;
  }

  /** Bounds an answer of the store by the timeout, if the store keeps no deadlines. */
  protected abstract inTime<A>(answer: A): A;

  settle(limit: Limit, key: string, charge: Charge, cost: number): Answer<number, M> {
    return this.inTime(this.store.settle(limit, key, charge, cost, this.timeoutMs));
  }

  renew(limit: Limit, key: string, charge: Charge): Decided<Decision | undefined, M> {
    return this.inTime(renewingStore(this.store).renew(limit, key, charge, this.timeoutMs));
  }

  reset(limit: Limit, key: string): Answer<void, M> {
    return this.inTime(this.store.reset(limit, key, this.timeoutMs));
  }

  block(name: string, key: string, forMs: number, kind: BlockKind): Answer<Blocked, M> {
    return this.inTime(this.store.block(name, key, forMs, kind, this.timeoutMs));
  }

  unblock(name: string, key: string): Answer<void, M> {
    return this.inTime(this.store.unblock(name, key, this.timeoutMs));
  }

  keyState(limit: Limit, key: string): Answer<Inspection, M> {
    return this.inTime(this.store.keyState(limit, key, this.timeoutMs));
  }
}

/**
 * The guard of a synchronous store without `onStoreError`: no deadline and no breaker, and an error of the store is an error of the request.
 */
export class DirectGuard extends BaseGuard<"sync"> implements OwnGuard<"sync"> {
  readonly fallback = undefined;

  constructor(store: Store<"sync">) {
    super(store, 0);
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    const made = this.store.consume(limit, key, cost);
    return made.allowed ? withCharge(made, limit, key, this) : chargeable(made);
  }

  decide(checks: readonly Check[]): CombinedDecision {
    const { limit, key, cost, shadow, dryRun } = checks[0] as Check;
    if (checks.length > 1 || dryRun === true) return combine(checks, this.store.consumeAll(checks), this);
    const made = this.store.consume(limit, key, cost);
    const decision = made.allowed ? withCharge(made, limit, key, this) : chargeable(made);
    return { allowed: made.allowed || shadow === true, decision, all: [decision] };
  }

  peek(limit: Limit, key: string): Decision {
    return chargeable(this.store.peek(limit, key));
  }

  charge(limit: Limit, key: string, cost: number): number {
    return this.store.settle(limit, key, nothingReserved, cost);
  }

  protected inTime<A>(answer: A): A {
    return answer;
  }

  listen(): void {}

  close(): void {}
}
