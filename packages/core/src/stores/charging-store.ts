import { chargedAll } from "../limits/all-or-nothing.js";
import { type Charge, charged, owned } from "../limits/charge.js";
import type { Decision } from "../limits/decision.js";
import type { Limit } from "../limits/limit.js";
import { type Check, type Store, scopeOf } from "./store.js";

/** Adds charges to the decisions of a synchronous store, without a deadline or breaker. */
export class ChargingStore implements Store<"sync"> {
  readonly mode = "sync";
  readonly scope: object;
  readonly sharedAs: string | undefined;
  readonly #store: Store<"sync">;

  constructor(store: Store<"sync">) {
    this.scope = scopeOf(store);
    this.sharedAs = store.sharedAs;
    this.#store = store;
  }

  consume(limit: Limit, key: string, cost: number): Decision {
    const made = this.#store.consume(limit, key, cost);
    return made.allowed ? charged(made, limit, key, this) : owned(made);
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    return chargedAll(checks, this.#store.consumeAll(checks), this);
  }

  peek(limit: Limit, key: string): Decision {
    return owned(this.#store.peek(limit, key));
  }

  settle(limit: Limit, key: string, charge: Charge, cost: number): number {
    return this.#store.settle(limit, key, charge, cost);
  }

  reset(limit: Limit, key: string): void {
    this.#store.reset(limit, key);
  }
}
