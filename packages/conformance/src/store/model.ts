import type { Policy, StateView } from "@floodgate/core";
import { amountOf, largestOf, rulesOf } from "./algorithms.js";
import type { Charge, Rules } from "./model-rules.js";

/** The expected fields of a decision. */
export interface Verdict {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly delayMs: number;
  readonly atMs: number;
}

/**
 * The expected decisions for one key under one policy, or under plans of one kind. It works by definition and trial, without formulas:
 * `remaining` is the largest cost that fits, waits are the smallest that work. Slow, and shares no code with the algorithms.
 */
export class Model {
  #policy: Policy;
  #rules: Rules<unknown>;
  #state: unknown;
  /** The largest numbers of all plans that charged the state. They decide when the state ends. */
  #largest: Policy;
  #life = 0;

  constructor(policy: Policy) {
    this.#policy = policy;
    this.#rules = rulesOf(policy);
    this.#largest = policy;
  }

  /** A model with the same state, which goes on by itself. */
  copy(): Model {
    const copy = new Model(this.#policy);
    copy.#state = this.#state;
    copy.#largest = this.#largest;
    copy.#life = this.#life;
    return copy;
  }

  /** Switches to another plan: a policy with the same times. */
  change(policy: Policy): void {
    this.#policy = policy;
    this.#rules = rulesOf(policy);
  }

  /** Identifies the current state of the key. After a full refund, the next charge begins a new state. */
  get life(): number {
    return this.#life;
  }

  consume(nowMs: number, cost: number): Verdict {
    const rules = this.#rules;
    const before = this.#at(nowMs);
    const atMs = this.#countingFrom(before, nowMs);
    const allowed = this.#fits(before, atMs, cost);
    const delayMs = allowed ? this.#delayMs(before, atMs) : 0;
    if (allowed) this.#charge(nowMs, rules.take(before, atMs, cost));
    else if (rules.reject !== undefined) this.#charge(nowMs, rules.reject(before, atMs, cost));
    return this.#verdict(nowMs, allowed, delayMs, atMs, cost);
  }

  peek(nowMs: number): Verdict {
    const before = this.#at(nowMs);
    const atMs = this.#countingFrom(before, nowMs);
    const allowed = this.#fits(before, atMs, 1);
    return this.#verdict(nowMs, allowed, allowed ? this.#delayMs(before, atMs) : 0, atMs, 1);
  }

  /** What an inspection shows. A state may end before a smaller or slower plan alone would have forgotten it. */
  keyState(nowMs: number): StateView {
    const state = this.#stored(nowMs);
    if (state === undefined) return { kind: "empty" };
    const atMs = this.#countingFrom(state, nowMs);
    if (!this.#rules.counts(state, atMs)) return { kind: "empty" };
    const view = this.#rules.view(state, atMs);
    return view.kind === "queue" ? { ...view, drainedAtMs: Math.min(view.drainedAtMs, this.#endMs(state)) } : view;
  }

  /**
   * Returns the units charged in addition; negative if units were given back.
   * @param life the state that was charged. A charge to an older state refunds nothing, and in a window owes nothing.
   */
  settle(nowMs: number, { atMs: chargedAtMs, cost: reserved }: Charge, cost: number, life: number): number {
    const counts = this.#state !== undefined && life === this.#life;
    const charge = { atMs: counts ? chargedAtMs : Number.NEGATIVE_INFINITY, cost: reserved };
    if (!counts && cost <= reserved) return 0;
    const state = this.#stored(nowMs);
    const atMs = this.#countingFrom(state, nowMs);
    if (cost > charge.cost) {
      const more = cost - charge.cost;
      const next = this.#rules.owe(state, atMs, charge, more, this.#largest.quota);
      if (next === undefined) return 0;
      this.#owe(state, next);
      return more;
    }
    if (state === undefined) return 0;
    const largest = largestOf([this.#largest, this.#policy]);
    const [next, units] = this.#rules.give(state, atMs, charge, cost, { quota: this.#largest.quota, amount: amountOf(largest) });
    // A full refund leaves no state.
    if (units > 0) this.#state = rulesOf(this.#largest).counts(next, atMs) ? next : undefined;
    return 0 - units;
  }

  /** Records usage that nothing was reserved for. */
  charge(nowMs: number, units: number): number {
    const state = this.#stored(nowMs);
    const atMs = this.#countingFrom(state, nowMs);
    const next = this.#rules.owe(state, atMs, { atMs, cost: 0 }, units, this.#largest.quota);
    if (next === undefined) return 0;
    this.#owe(state, next);
    return units;
  }

  /** @param before the state until now; undefined if the debt begins one. */
  #owe(before: unknown, next: unknown): void {
    if (before === undefined) {
      this.#largest = this.#policy;
      this.#life++;
    }
    this.#state = next;
  }

  #charge(nowMs: number, next: unknown): void {
    if (this.#stored(nowMs) === undefined) this.#life++;
    this.#largest = this.#stored(nowMs) === undefined ? this.#policy : largestOf([this.#largest, this.#policy]);
    this.#state = next;
  }

  /** The state at that time; undefined if this plan has the largest quota and the state no longer counts under it. */
  #at(nowMs: number): unknown {
    const state = this.#stored(nowMs);
    if (state === undefined || this.#policy.quota < this.#largest.quota) return state;
    return this.#rules.counts(state, this.#countingFrom(state, nowMs)) ? state : undefined;
  }

  /** The state until the largest plan forgets it. A state more than one span ahead of the clock is void. */
  #stored(nowMs: number): unknown {
    const state = this.#state;
    if (state === undefined) return undefined;
    const aheadMs = this.#rules.ownMs(state) - nowMs;
    if (aheadMs > 0 && aheadMs > largestOf([this.#largest, this.#policy]).spanMs) return undefined;
    return rulesOf(this.#largest).counts(state, this.#countingFrom(state, nowMs)) ? state : undefined;
  }

  #fits(state: unknown, atMs: number, cost: number): boolean {
    return this.#rules.fits(state, atMs, cost) && this.#delayMs(state, atMs) <= (this.#rules.maxDelayMs ?? 0);
  }

  #delayMs(state: unknown, atMs: number): number {
    const delayMs = state === undefined ? 0 : (this.#rules.delayMs?.(state, atMs) ?? 0);
    return delayMs === 0 ? 0 : Math.min(delayMs, this.#endMs(state) - atMs);
  }

  #endMs(state: unknown): number {
    const rules = rulesOf(this.#largest);
    const fromMs = rules.ownMs(state);
    return fromMs + leastWait((ms) => !rules.counts(state, fromMs + ms));
  }

  #countingFrom(state: unknown, nowMs: number): number {
    return state === undefined ? nowMs : Math.max(nowMs, this.#rules.ownMs(state));
  }

  #verdict(nowMs: number, allowed: boolean, delayMs: number, atMs: number, cost: number): Verdict {
    const { quota } = this.#rules;
    // A state that is void now stays void.
    const after = this.#stored(nowMs);
    const endMs = after === undefined ? nowMs : this.#endMs(after);
    const leftAt = (ms: number) => (ms < endMs ? after : undefined);
    const fitsAt = (ms: number, units: number) => this.#fits(leftAt(ms), this.#countingFrom(leftAt(ms), ms), units);
    const countsAt = (ms: number) => leftAt(ms) !== undefined && this.#rules.counts(after, this.#countingFrom(after, ms));
    return {
      allowed,
      limit: quota,
      remaining: least(0, quota, (units) => !fitsAt(nowMs, units + 1)),
      retryAfterMs: cost > quota ? Number.POSITIVE_INFINITY : leastWait((ms) => fitsAt(nowMs + ms, cost)),
      resetAfterMs: leastWait((ms) => !countsAt(nowMs + ms)),
      delayMs,
      atMs,
    };
  }
}

/** The smallest wait from which `holds` is true. */
function leastWait(holds: (ms: number) => boolean): number {
  let latest = 1;
  while (!holds(latest)) latest *= 2;
  return least(0, latest, holds);
}

/** The smallest number of a range from which `holds` is true. */
function least(from: number, to: number, holds: (value: number) => boolean): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
