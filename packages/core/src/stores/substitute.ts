import { decision } from "../algorithms/algorithm.js";
import { algorithmOf } from "../algorithms/registry.js";
import { type ChargeRecord, restated } from "../limits/charge.js";
import type { Decision } from "../limits/decision.js";
import type { Limit } from "../limits/limit.js";
import type { Breaker } from "./breaker.js";
import type { Check, Store } from "./store.js";

/** The store as long as somebody waits for it: what it is asked fails when that is over. */
export type AskedStore = Pick<Store, "consume" | "settle">;

/** Who decides what the store cannot. Each decision is `degraded`, and has a charge where something was charged here. */
export interface Substitute extends Omit<Store<"sync">, "settle"> {
  /** Whether there may be something that the store has to be told once it is back. */
  readonly owes: boolean;
  /** Tells the store, if there is something to tell, what these keys have used meanwhile; a fault of it is one of this too. */
  handOver(checks: readonly Check[], store: () => AskedStore): void | PromiseLike<void>;
  /** Settles a charge of its own, in the store if that has been told of it. */
  settle(limit: Limit, key: string, charge: ChargeRecord, cost: number, store: AskedStore): number | PromiseLike<number>;
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
    const { quota } = limit.policy;
    return restated(decision(limit, quota, this.#allows, 0, retryAfterMs, 0, 0, cost, Date.now()), { degraded: true });
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

/** The units of a key that still count, by a look at it. */
export function unitsOf(look: Decision): number {
  return algorithmOf(look.policy).used?.(look.policy, look) ?? look.limit - look.remaining;
}
