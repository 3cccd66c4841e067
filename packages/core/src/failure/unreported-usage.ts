import type { Charge } from "../algorithms/algorithm.js";
import { asCharge } from "../algorithms/decision.js";
import type { Decision } from "../decide/decision.js";
import type { Limit } from "../decide/limit.js";
import { NewestMap } from "../support/newest-map.js";
import type { DeadlineStore } from "./fallback-store.js";

/** How many keys with unreported usage are kept at least; the oldest are dropped. */
const keptKeys = 100_000;

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

/** The usage of each key that has not been reported to the store. */
export class UnreportedUsage {
  readonly #open = new NewestMap<LocalUsage>(keptKeys);

  /** The limit that shows all unreported usage of a key. Returns undefined if all usage is reported. */
  limitOf(key: string): Limit | undefined {
    return this.#open.get(key)?.limit;
  }

  /** The units that the store had no room for at the last hand-over, while they would still be draining. */
  owedBy(key: string, nowMs: number): number {
    const owed = this.#open.get(key)?.owed;
    return owed !== undefined && nowMs < owed.untilMs ? owed.units : 0;
  }

  /** Makes a record for a key if it has none. */
  open(key: string, limit: Limit): LocalUsage {
    let usage = this.#open.get(key);
    if (usage === undefined) {
      usage = { limit, decisions: 0 };
      this.#open.set(key, usage);
    } else if (limit.policy.quota > usage.limit.policy.quota) {
      usage.limit = limit;
    }
    return usage;
  }

  /** Records a decision that charged a key. */
  add(key: string, limit: Limit): LocalUsage {
    const usage = this.open(key, limit);
    usage.decisions++;
    return usage;
  }

  /** Records that the store was charged for the usage of a key. */
  handOver(key: string, charge: Decision, used: Decision): void {
    const usage = this.#open.get(key);
    if (usage !== undefined) usage.handedOver = new HandedOver(charge, used, usage.decisions);
    this.#open.delete(key);
  }

  /** Drops the record of a key. */
  forget(key: string): void {
    this.#open.delete(key);
  }
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
  settle(limit: Limit, share: Limit, key: string, charge: Charge, cost: number, store: DeadlineStore): number | PromiseLike<number> {
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
  const cells = new Float64Array(algorithm.size(policy, new Float64Array(algorithm.cells.length), 0));
  const refilledMs = algorithm.refilledMs?.(policy, atMs, used.atMs + used.resetAfterMs) ?? atMs;
  algorithm.decide(share, cells, 0, refilledMs, reserved, true);
  const change = algorithm.settle(policy, cells, 0, used.atMs, atMs, reserved, cost);
  if (change > 0) return Math.ceil(change);
  // Counted rejections may have displaced the charge.
  if (algorithm.countsRejected?.(policy)) return 0;
  const back = Math.floor(-change);
  return -(algorithm.weight?.(policy, back, atMs, used.atMs) ?? back);
}
