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
  readonly #rules: Rules<unknown>;
  #state: unknown;

  constructor(policy: Policy) {
    this.#rules = rulesOf(policy);
  }

  consume(nowMs: number, cost: number): Verdict {
    const rules = this.#rules;
    const before = this.#at(nowMs);
    const atMs = this.#countingFrom(before, nowMs);
    const allowed = rules.fits(before, atMs, cost);
    if (allowed) this.#state = rules.take(before, atMs, cost);
    else if (rules.reject !== undefined) this.#state = rules.reject(before, atMs, cost);
    return this.#verdict(allowed, before, nowMs, cost);
  }

  peek(nowMs: number): Verdict {
    const before = this.#at(nowMs);
    return this.#verdict(this.#rules.fits(before, this.#countingFrom(before, nowMs), 1), before, nowMs, 1);
  }

  refund(nowMs: number, charge: Charge): number {
    const state = this.#at(nowMs);
    if (state === undefined) return 0;
    const atMs = this.#countingFrom(state, nowMs);
    const [next, units] = this.#rules.give(state, atMs, charge);
    if (units > 0) this.#state = next;
    return units;
  }

  /** The state as of that time; a full one and one from more than a span ahead are none. */
  #at(nowMs: number): unknown {
    const state = this.#state;
    if (state === undefined || this.#rules.ownMs(state) - nowMs > this.#rules.spanMs) return undefined;
    return this.#rules.counts(state, this.#countingFrom(state, nowMs)) ? state : undefined;
  }

  #countingFrom(state: unknown, nowMs: number): number {
    return state === undefined ? nowMs : Math.max(nowMs, this.#rules.ownMs(state));
  }

  #verdict(allowed: boolean, before: unknown, nowMs: number, cost: number): Verdict {
    const rules = this.#rules;
    const after = this.#at(nowMs);
    const countsAt = (ms: number) => after !== undefined && rules.counts(after, this.#countingFrom(after, ms));
    const fitsAt = (ms: number, units: number) => {
      const left = countsAt(ms) ? after : undefined;
      return rules.fits(left, this.#countingFrom(left, ms), units);
    };
    // Three spans: one that the clock is behind, one for a count to age, one more for its sub-window.
    const latest = 3 * rules.spanMs;
    const atMs = this.#countingFrom(before, nowMs);
    return {
      allowed,
      limit: rules.quota,
      remaining: least(0, rules.quota, (units) => !fitsAt(nowMs, units + 1)),
      retryAfterMs: cost > rules.quota ? Number.POSITIVE_INFINITY : least(0, latest, (ms) => fitsAt(nowMs + ms, cost)),
      resetAfterMs: least(0, latest, (ms) => !countsAt(nowMs + ms)),
      delayMs: allowed ? (rules.delayMs?.(before, atMs) ?? 0) : 0,
      atMs,
    };
  }
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
