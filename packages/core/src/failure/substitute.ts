import { decision } from "../algorithms/algorithm.js";
import type { Decision } from "../decision.js";
import type { Limit } from "../limit.js";
import type { Check, Store } from "../store.js";
import type { Breaker } from "./breaker.js";

/** Charges the store so many units of a key, in time, as a request of that cost. */
export type Charge = (limit: Limit, key: string, units: number) => Decision | PromiseLike<Decision>;

/** Who decides what the store cannot. Each decision is `degraded`. */
export interface Substitute extends Store<"sync"> {
  /** Whether there may be something that the store has to be told once it is back. */
  readonly owes: boolean;
  /** Tells the store what these keys have used meanwhile; a fault of it is one of this too. */
  handOver(checks: readonly Check[], charge: Charge): void | PromiseLike<void>;
}

/** Decides without knowing anything: all pass, or none does. */
export class Blind implements Substitute {
  readonly mode = "sync";
  readonly owes = false;
  readonly #allows: boolean;
  readonly #breaker: Breaker;

  constructor(allows: boolean, breaker: Breaker) {
    this.#allows = allows;
    this.#breaker = breaker;
  }

  consume(limit: Limit, _key: string, cost: number): Decision {
    const retryAfterMs = this.#allows ? 0 : this.#breaker.waitMs;
    return { ...decision(limit, limit.policy.quota, this.#allows, 0, retryAfterMs, 0, 0, cost, Date.now()), degraded: true };
  }

  consumeAll(checks: readonly Check[]): Decision[] {
    return checks.map(({ limit, key, cost }) => this.consume(limit, key, cost));
  }

  peek(limit: Limit, key: string): Decision {
    return this.consume(limit, key, 1);
  }

  /** Nothing was charged. */
  settle(): number {
    return 0;
  }

  reset(): void {}

  handOver(): void {}
}
