import type { Policy } from "@floodgate/core";
import { type Charge, type Rules, rulesOf } from "./model-rules.js";

/** What a decision must say. */
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
 * One key under one policy, by definition and trial rather than by formula: `remaining` is the largest cost that fits,
 * the waits are the least after which a request fits or nothing is left. Slow, and shares no code with the algorithms.
 */
export class Model {
  #rules: Rules<unknown>;
  #state: unknown;
  /** When the last of the policies that have charged the state takes it for none. */
  #noneAtMs = 0;

  constructor(policy: Policy) {
    this.#rules = rulesOf(policy);
  }

  /** Another policy with the same times: another plan. */
  change(policy: Policy): void {
    this.#rules = rulesOf(policy);
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

  /** Answers the units charged in addition, or below 0 those given back. */
  settle(nowMs: number, charge: Charge, cost: number): number {
    const state = this.#stored(nowMs);
    const atMs = this.#countingFrom(state, nowMs);
    if (cost > charge.cost) {
      const more = cost - charge.cost;
      const next = this.#rules.owe(state, atMs, charge, more);
      if (next === undefined) return 0;
      this.#change(state, next, this.#rules.takesMs?.(more) ?? 0, false);
      return more;
    }
    if (state === undefined) return 0;
    const [next, units, over] = this.#rules.give(state, atMs, charge, cost);
    if (units > 0) this.#change(state, next, 0, over);
    return 0 - units;
  }

  /** What others have charged too ends no sooner than they say, and never just when this policy says, as if it were its own. */
  #charge(nowMs: number, next: unknown): void {
    const own = this.#isOwn(this.#stored(nowMs));
    const endMs = this.#endMs(next);
    this.#state = next;
    this.#noneAtMs = own ? endMs : Math.max(endMs + 1, this.#noneAtMs);
  }

  /**
   * What is settled changes a state by so much and no more. Where it ends just when this policy says, it is this policy's own, and ends
   * when that says of what is left. Another policy's ends later by what is owed, and no sooner for what is given back.
   */
  #change(before: unknown, next: unknown, longerMs: number, over: boolean): void {
    const own = this.#isOwn(before);
    this.#state = own && over ? undefined : next;
    this.#noneAtMs = own ? this.#endMs(next) : this.#noneAtMs + longerMs;
  }

  #isOwn(state: unknown): boolean {
    return state === undefined || this.#endMs(state) === this.#noneAtMs;
  }

  /** When nothing is left of what this policy sees of a state, by its rules. */
  #endMs(state: unknown): number {
    const rules = this.#rules;
    const seen = rules.seen?.(state) ?? state;
    const fromMs = rules.ownMs(state);
    return fromMs + leastWait((ms) => !rules.counts(seen, fromMs + ms));
  }

  /** The state as of that time; one that is full by this policy's rules is none. */
  #at(nowMs: number): unknown {
    const state = this.#stored(nowMs);
    return this.#counts(state, nowMs) ? state : undefined;
  }

  /** The state as it was left, also where it is full by this policy's rules; one from more than a span ahead is none. */
  #stored(nowMs: number): unknown {
    const state = this.#state;
    if (state === undefined || nowMs >= this.#noneAtMs || this.#rules.ownMs(state) - nowMs > this.#rules.spanMs) return undefined;
    return state;
  }

  #counts(state: unknown, nowMs: number): boolean {
    return state !== undefined && nowMs < this.#noneAtMs && this.#rules.counts(state, this.#countingFrom(state, nowMs));
  }

  #fits(state: unknown, atMs: number, cost: number): boolean {
    return this.#rules.fits(state, atMs, cost) && this.#delayMs(state, atMs) <= (this.#rules.maxDelayMs ?? 0);
  }

  #delayMs(state: unknown, atMs: number): number {
    return state === undefined ? 0 : Math.min(this.#rules.delayMs?.(state, atMs) ?? 0, this.#noneAtMs - atMs);
  }

  #countingFrom(state: unknown, nowMs: number): number {
    return state === undefined ? nowMs : Math.max(nowMs, this.#rules.ownMs(state));
  }

  #verdict(nowMs: number, allowed: boolean, delayMs: number, atMs: number, cost: number): Verdict {
    const { quota } = this.#rules;
    const after = this.#at(nowMs);
    const fitsAt = (ms: number, units: number) => {
      const left = this.#counts(after, ms) ? after : undefined;
      return this.#fits(left, this.#countingFrom(left, ms), units);
    };
    return {
      allowed,
      limit: quota,
      remaining: least(0, quota, (units) => !fitsAt(nowMs, units + 1)),
      retryAfterMs: cost > quota ? Number.POSITIVE_INFINITY : leastWait((ms) => fitsAt(nowMs + ms, cost)),
      resetAfterMs: leastWait((ms) => !this.#counts(after, nowMs + ms)),
      delayMs,
      atMs,
    };
  }
}

/** The least wait from which on something holds. */
function leastWait(holds: (ms: number) => boolean): number {
  let latest = 1;
  while (!holds(latest)) latest *= 2;
  return least(0, latest, holds);
}

/** The least number of a range from which on something holds. */
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
