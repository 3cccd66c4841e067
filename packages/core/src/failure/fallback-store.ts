import type { Settler } from "../algorithms/algorithm.js";
import { copyWith, MadeDecision } from "../algorithms/decision.js";
import { algorithmOf, type Policy } from "../algorithms/registry.js";
import type { StateView } from "../algorithms/state-view.js";
import { type CombinedDecision, combine, type Decision } from "../decide/decision.js";
import type { Check, Limit } from "../decide/limit.js";
import type { Store } from "../decide/store.js";
import type { Breakers } from "./breakers.js";

/** The calls that may reach the store, each within what is left of a deadline. */
export type DeadlineStore = Pick<Store, "consume" | "settle">;

/** The guard whose store failed. It settles what the fallback charged in its place. */
export interface FallbackUser extends Settler<Policy> {
  /** Runs `settle` with the store, within the timeout. */
  settleInTime(settle: (store: DeadlineStore) => number | PromiseLike<number>): number | PromiseLike<number>;
}

/** Decides what the store cannot. Each decision is `degraded`, and has a charge if something was charged. */
export interface FallbackStore {
  /** Whether there may be usage to report when the store returns. */
  readonly hasUnreported: boolean;
  decide(checks: readonly Check[], user: FallbackUser): CombinedDecision;
  peek(limit: Limit, key: string): Decision;
  /** Records usage that has happened. Returns the units that were counted. */
  charge(limit: Limit, key: string, cost: number): number;
  reset(limit: Limit, key: string): void;
  /** Reports the unreported usage of these keys to the store. Fails if the store fails. */
  handOver(checks: readonly Check[], store: () => DeadlineStore): void | PromiseLike<void>;
}

/** Decides without counting: allows every request, or rejects every request. */
export class NoFallback implements FallbackStore {
  readonly hasUnreported = false;
  readonly #allows: boolean;
  readonly #breakers: Breakers;

  constructor(allows: boolean, breakers: Breakers) {
    this.#allows = allows;
    this.#breakers = breakers;
  }

  decide(checks: readonly Check[]): CombinedDecision {
    return combine(
      checks,
      checks.map(({ limit, cost }) => this.#uncounted(limit, cost)),
    );
  }

  peek(limit: Limit): Decision {
    return this.#uncounted(limit, 1);
  }

  #uncounted(limit: Limit, cost: number): Decision {
    const retryAfterMs = this.#allows ? 0 : this.#breakers.waitMs;
    const finding = { allowed: this.#allows, remaining: 0, retryAfterMs, resetAfterMs: 0, delayMs: 0, atMs: Date.now() };
    return copyWith(new MadeDecision(limit, cost, finding), { degraded: true, degradedBy: this.#allows ? "allow" : "deny" });
  }

  charge(): number {
    return 0;
  }

  reset(): void {}

  handOver(): void {}
}

/** The units by which a key is in debt, rounded up. */
export function debtIn(state: StateView): number {
  switch (state.kind) {
    case "empty":
      return 0;
    case "bucket":
      return Math.max(Math.ceil(-state.level), 0);
    case "queue":
      return Math.max(Math.ceil(state.length - state.capacity), 0);
    case "log":
      return Math.max(state.total - state.limit, 0);
    case "windows":
      return Math.max(
        state.windows.reduce((units, { count, weight }) => units + Math.floor(count * weight), -state.limit),
        0,
      );
    case "held":
      return debtIn(state.used);
  }
}

/** The units of a key that still count, from a peek. */
export function unitsOf(peeked: Decision): number {
  return algorithmOf(peeked.policy).used?.(peeked.policy, peeked) ?? peeked.limit - peeked.remaining;
}
