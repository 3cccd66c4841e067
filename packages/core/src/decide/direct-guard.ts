import { chargedAll } from "./all-or-nothing.js";
import type { Charge } from "./charge.js";
import { charged, owned } from "./charge-record.js";
import type { Decision } from "./decision.js";
import type { Guard } from "./guard.js";
import type { Limit } from "./limit.js";
import { type Blocked, type BlockKind, type Check, type Inspection, type Store, scopeOf } from "./store.js";
import { consumeBesideZero, hasZero, inspectZero, isZero, zeroDecision } from "./zero-limits.js";

/**
 * The guard of a synchronous store without `onStoreError`: no deadline and no breaker, and an error of the store is an error of the request.
 * It attaches the charge to each decision that charges a key.
 */
export class DirectGuard implements Guard<"sync"> {
  readonly mode = "sync";
  readonly scope: object;
  readonly sharedAs: string | undefined;
  readonly fallback = undefined;
  readonly timeoutMs = 0;
  readonly #store: Store<"sync">;

  constructor(store: Store<"sync">) {
    this.scope = scopeOf(store);
    this.sharedAs = store.sharedAs;
    this.#store = store;
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    if (limit.policy.quota === 0) return zeroDecision(limit, cost);
    const made = this.#store.consume(limit, key, cost);
    return made.allowed ? charged(made, limit, key, this) : owned(made);
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    if (hasZero(checks)) return consumeBesideZero(this, checks) as Decision[];
    return chargedAll(checks, this.#store.consumeAll(checks), this);
  }

  peek(limit: Limit, key: string): Decision {
    if (limit.policy.quota === 0) return zeroDecision(limit, 1);
    return owned(this.#store.peek(limit, key));
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number): number {
    return this.#store.settle(limit, key, charge, cost);
  }

  reset(limit: Limit, key: string): void {
    this.#store.reset(limit, key);
  }

  block(name: string, key: string, forMs: number, kind: BlockKind): Blocked {
    return this.#store.block(name, key, forMs, kind);
  }

  unblock(name: string, key: string): void {
    this.#store.unblock(name, key);
  }

  keyState(limit: Limit, key: string): Inspection {
    const keyState = (asked: Limit): Inspection => this.#store.keyState(asked, key);
    return isZero({ limit }) ? (inspectZero(limit, keyState) as Inspection) : keyState(limit);
  }

  atMost<T>(_timeoutMs: number, pending: PromiseLike<T>): PromiseLike<T> {
    return pending;
  }

  listen(): void {}

  close(): void {}
}
