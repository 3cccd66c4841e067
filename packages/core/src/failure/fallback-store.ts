import { decision } from "../algorithms/algorithm.js";
import { algorithmOf } from "../algorithms/registry.js";
import { restated } from "../decide/charge.js";
import type { ChargeRecord } from "../decide/charge-record.js";
import type { Decision } from "../decide/decision.js";
import type { Limit } from "../decide/limit.js";
import type { Check, DeadlineStore, Store } from "../decide/store.js";
import type { Breakers } from "./breakers.js";

/** Decides what the store cannot. Each decision is `degraded`, and has a charge if this store charged something. */
export interface FallbackStore extends Omit<Store<"sync">, "settle" | "block" | "unblock" | "keyState"> {
  /** Whether there may be usage to report when the store returns. */
  readonly hasUnreported: boolean;
  /** Reports the unreported usage of these keys to the store. Fails if the store fails. */
  handOver(checks: readonly Check[], store: () => DeadlineStore): void | PromiseLike<void>;
  /** Settles a charge made here. If its usage was reported, it is settled in the store. */
  settle(limit: Limit, key: string, charge: ChargeRecord, cost: number, store: DeadlineStore): number | PromiseLike<number>;
}

/** Decides without counting: allows every request, or rejects every request. */
export class NoFallback implements FallbackStore {
  readonly mode = "sync";
  readonly hasUnreported = false;
  readonly #allows: boolean;
  readonly #breakers: Breakers;

  constructor(allows: boolean, breakers: Breakers) {
    this.#allows = allows;
    this.#breakers = breakers;
  }

  consume(limit: Limit, _key: string, cost: number): Decision {
    const retryAfterMs = this.#allows ? 0 : this.#breakers.waitMs;
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

/** The units of a key that still count, from a peek. */
export function unitsOf(peeked: Decision): number {
  return algorithmOf(peeked.policy).used?.(peeked.policy, peeked) ?? peeked.limit - peeked.remaining;
}
