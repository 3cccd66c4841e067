import type { Decision } from "../decision.js";
import type { Limit } from "../limit.js";
import { type AskedStore, unitsOf } from "./substitute.js";

/** Of so many keys at most is known what the store has not been told of yet; the one that was first goes first. */
const mostKeys = 100_000;

/** What a key has been charged here from one hand-over to the next. */
interface Tally {
  handedOver?: HandedOver;
}

/** Which decisions the store has been told of, so that they can be settled there. */
export class Tallies {
  readonly #open = new Map<string, Tally>();
  readonly #tallies = new WeakMap<Decision, Tally>();

  /** A key has been charged by this decision. */
  add(key: string, decision: Decision): void {
    let tally = this.#open.get(key);
    if (tally === undefined) {
      if (this.#open.size >= mostKeys) this.#open.delete(this.#open.keys().next().value as string);
      tally = {};
      this.#open.set(key, tally);
    }
    this.#tallies.set(decision, tally);
  }

  /** The store has been charged for the decisions of a key; without a charge, they count no more. */
  close(key: string, handedOver?: HandedOver): void {
    const tally = this.#open.get(key);
    this.#open.delete(key);
    if (tally !== undefined && handedOver !== undefined) tally.handedOver = handedOver;
  }

  /** What stands for a decision in the store; undefined where the store has not been told of it. */
  handedOver(decision: Decision): HandedOver | undefined {
    return this.#tallies.get(decision)?.handedOver;
  }
}

/** The store's charge for all that a key had used here. */
export class HandedOver {
  readonly #charge: Decision;
  /** When the store was told, by the fallback's clock. */
  readonly #atMs: number;
  /** What the charge comes to, with what has been settled of it since. */
  #units: number;

  constructor(charge: Decision, atMs: number) {
    this.#charge = charge;
    this.#atMs = atMs;
    this.#units = charge.cost;
  }

  /**
   * Settles one of the decisions that the charge stands for, as a part of it: the change is what it would have been just before the
   * hand-over, and counts from then on like the charge. All that is given back is never more than the store was charged.
   */
  settle(limit: Limit, share: Limit, key: string, decision: Decision, cost: number, store: AskedStore): number | PromiseLike<number> {
    const before = this.#units;
    this.#units = Math.max(before + changeThen(share, decision, cost, this.#atMs), 0);
    if (this.#units === before) return 0;
    return store.settle(limit, key, { ...this.#charge, cost: before }, this.#units);
  }
}

/** What a settlement would have changed at an earlier time, in whole units, of a charge that is alone: rather too much than too little. */
function changeThen(share: Limit, { atMs, cost: reserved }: Decision, cost: number, thenMs: number): number {
  const { algorithm, policy } = share;
  const cells = new Float64Array(algorithm.size(policy, new Float64Array(3), 0));
  const left = (): number => unitsOf(algorithm.decide(share, cells, 0, thenMs, 1, false));
  algorithm.decide(share, cells, 0, atMs, reserved, true);
  const before = left();
  const change = algorithm.settle(policy, cells, 0, thenMs, atMs, reserved, cost);
  // What is leaving a sliding window counted only in part, and in part had flowed off.
  return change > 0 ? Math.ceil(change) : -Math.min(Math.floor(-change), before - left());
}
