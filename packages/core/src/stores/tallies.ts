import { asCharge, type Charge } from "../limits/charge.js";
import type { Decision } from "../limits/decision.js";
import type { Limit } from "../limits/limit.js";
import type { AskedStore } from "./substitute.js";

/** Of so many keys at most is known what the store has not been told of yet; the one that was first goes first. */
const mostKeys = 100_000;

/** What a key has been charged here from one hand-over to the next. */
export interface Tally {
  /** Of the limits that it was charged under, the one that holds the most: a smaller one does not see all that was used. */
  limit: Limit;
  decisions: number;
  /** What a bucket in the store had no room for at the last hand-over. It does not flow off here too while it flows off there. */
  owed?: { readonly units: number; readonly untilMs: number };
  /** What stands for its charges in the store; undefined where the store has not been told of them. */
  handedOver?: HandedOver;
}

/** What each key has used here that the store has not been told of. */
export class Tallies {
  readonly #open = new Map<string, Tally>();

  /** The limit that sees all that a key has used here; undefined where nothing is known of the key. */
  limitOf(key: string): Limit | undefined {
    return this.#open.get(key)?.limit;
  }

  /** The units of a key that the store had no room for, and still would be without these. */
  owedBy(key: string, nowMs: number): number {
    const owed = this.#open.get(key)?.owed;
    return owed !== undefined && nowMs < owed.untilMs ? owed.units : 0;
  }

  /** Something of a key counts here under this limit. */
  open(key: string, limit: Limit): Tally {
    let tally = this.#open.get(key);
    if (tally === undefined) {
      if (this.#open.size >= mostKeys) this.#open.delete(this.#open.keys().next().value as string);
      tally = { limit, decisions: 0 };
      this.#open.set(key, tally);
    } else if (limit.policy.quota > tally.limit.policy.quota) {
      tally.limit = limit;
    }
    return tally;
  }

  /** A key has been charged under this limit, by one decision more. */
  add(key: string, limit: Limit): Tally {
    const tally = this.open(key, limit);
    tally.decisions++;
    return tally;
  }

  /** The store has been charged for what a key had used by its decisions. */
  handOver(key: string, charge: Decision, used: Decision): void {
    const tally = this.#open.get(key);
    if (tally !== undefined) tally.handedOver = new HandedOver(charge, used, tally.decisions);
    this.#open.delete(key);
  }

  /** The decisions of a key count no more. */
  forget(key: string): void {
    this.#open.delete(key);
  }
}

/** The store's charge for all that a key had used here. */
export class HandedOver {
  readonly #charge: Charge;
  /** What the key had used here when the store was told, by the fallback's clock. */
  readonly #used: Decision;
  /** How many decisions may still be settled. */
  #decisions: number;
  /** What the charge comes to, with what has been settled of it since. */
  #units: number;

  constructor(charge: Decision, used: Decision, decisions: number) {
    this.#charge = asCharge(charge);
    this.#used = used;
    this.#decisions = decisions;
    this.#units = charge.cost;
  }

  /**
   * Settles one of the decisions that the charge stands for, as a part of it: the change is what it would have been just before the
   * hand-over, and counts from then on like the charge. All that is given back is never more than the store was charged; and one unit stays
   * as long as another decision may be settled, for nothing can be added to a charge that is gone.
   */
  settle(limit: Limit, share: Limit, key: string, charge: Charge, cost: number, store: AskedStore): number | PromiseLike<number> {
    const before = this.#units;
    this.#decisions--;
    this.#units = Math.max(before + changeThen(share, charge, cost, this.#used), Math.min(this.#decisions, 1));
    if (this.#units === before) return 0;
    return store.settle(limit, key, { ...this.#charge, cost: before }, this.#units);
  }
}

/** What a settlement would have changed when so much was used, in whole units, of a charge that is alone: rather too much than too little. */
function changeThen(share: Limit, { atMs, cost: reserved }: Charge, cost: number, used: Decision): number {
  const { algorithm, policy } = share;
  const cells = new Float64Array(algorithm.size(policy, new Float64Array(algorithm.cells.length), 0));
  const refilledMs = algorithm.refilledMs?.(policy, atMs, used.atMs + used.resetAfterMs) ?? atMs;
  algorithm.decide(share, cells, 0, refilledMs, reserved, true);
  const change = algorithm.settle(policy, cells, 0, used.atMs, atMs, reserved, cost);
  if (change > 0) return Math.ceil(change);
  // Rejected requests that were counted may have pushed the charge out.
  if (algorithm.countsRejected?.(policy)) return 0;
  const back = Math.floor(-change);
  return -(algorithm.weight?.(policy, back, atMs, used.atMs) ?? back);
}
