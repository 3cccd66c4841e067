import type { Charge } from "../algorithms/algorithm.js";
import { asCharge } from "../algorithms/decision.js";
import { noCells } from "../decide/charge.js";
import type { Decision, Limit } from "../decide/decision.js";
import type { Store } from "../decide/store.js";
import type { Promised } from "../support/promises.js";

/** What a key was charged here since the last hand-over. */
export interface LocalUsage {
  /** The largest limit that the key was charged under. A smaller one would not show all usage. */
  limit: Limit;
  decisions: number;
  /** What the store's bucket had no room for at the last hand-over. It drains in the store, so it must not drain here too. */
  owed?: { readonly units: number; readonly untilMs: number };
  /** The store's charge for these charges; undefined before the hand-over. */
  handedOver?: HandedOver;
}

/** The store's charge for everything that a key had used here. */
export class HandedOver {
  readonly #charge: Charge;
  /** The key's usage here at the hand-over, by the fallback's clock. */
  readonly #used: Decision;
  /** The number of decisions that may still be settled. */
  #decisions: number;
  /** The units of the charge, including settlements since. */
  #units: number;

  constructor(charge: Decision, used: Decision, decisions: number) {
    this.#charge = asCharge(charge);
    this.#used = used;
    this.#decisions = decisions;
    this.#units = charge.cost;
  }

  /**
   * Settles one of the decisions in this charge. The change is what it would have been just before the hand-over. Refunds never exceed the
   * charge. One unit stays while other decisions may be settled, because a charge of 0 cannot grow again.
   */
  settle(limit: Limit, share: Limit, key: string, charge: Charge, cost: number, store: Pick<Store, "settle">): Promised<number> {
    const before = this.#units;
    this.#decisions--;
    this.#units = Math.max(before + changeThen(share, charge, cost, this.#used), Math.min(this.#decisions, 1));
    if (this.#units === before) return 0;
    return store.settle(limit, key, { ...this.#charge, cost: before }, this.#units);
  }
}

/** The change that a settlement would have made at the hand-over, in whole units, rounded up. The charge is taken to be the only one. */
function changeThen(share: Limit, { atMs, cost: reserved, heldUntilMs }: Charge, cost: number, used: Decision): number {
  const { algorithm, policy } = share;
  const endMs = policy.algorithm === "concurrency" ? atMs + policy.holdMs : heldUntilMs;
  // Units whose time had ended then were not handed over.
  if (endMs !== undefined) return endMs > used.atMs ? cost - reserved : cost;
  const cells = new Float64Array(algorithm.size(policy, noCells, 0));
  const refilledMs = algorithm.refilledMs?.(policy, atMs, used.atMs + used.resetAfterMs) ?? atMs;
  algorithm.decide(share, cells, 0, refilledMs, reserved, true);
  const change = algorithm.settle(policy, cells, 0, used.atMs, atMs, reserved, cost);
  if (change > 0) return Math.ceil(change);
  // Counted rejections may have displaced the charge.
  if (algorithm.countsRejected?.(policy)) return 0;
  const back = Math.floor(-change);
  return -(algorithm.weight?.(policy, back, atMs, used.atMs) ?? back);
}
