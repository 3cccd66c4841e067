import { getOrMake } from "@floodgate/core/adapter";
import type { KeyBlock } from "@floodgate/core/store";

/** One key of a sketch. Its true count is in [count - error, count]. */
export interface Counter {
  readonly rule: string;
  readonly key: string;
  readonly count: number;
  readonly error: number;
  /** The block or ban of the key, if it was rejected for one. */
  readonly blocked?: KeyBlock | undefined;
}

/** What is left of a sketch when it is sent or merged. */
export interface Summary {
  readonly counters: number;
  readonly total: number;
  /** Largest first. */
  readonly keys: readonly Counter[];
}

type Slot = { -readonly [Field in keyof Counter]: Counter[Field] };

/** Longer keys are cut. Core's own keys have at most 200 characters, and a few more if they are escaped. */
const longestKey = 256;

/**
 * Counts the heaviest keys with a fixed number of counters (Space-Saving, Metwally et al. 2005). After N counts with m counters, no count is
 * more than N / m too high, none is too low, and each key above N / m has a counter. It is deterministic.
 */
export class Sketch {
  readonly #counters: number;
  readonly #byRule = new Map<string, Map<string, Slot>>();
  readonly #slots: Slot[] = [];
  /** The smallest count, and the first slot that may have it: counts only grow, so those before it have more. */
  #least = 0;
  #next = 0;
  #total = 0;

  constructor(counters: number) {
    this.#counters = counters;
  }

  add(rule: string, wholeKey: string): void {
    const key = wholeKey.length > longestKey ? wholeKey.slice(0, longestKey) : wholeKey;
    this.#total++;
    const slot = this.#byRule.get(rule)?.get(key) ?? this.#slotFor(rule, key);
    slot.count++;
  }

  summary(): Summary {
    const keys = this.#slots.map(({ rule, key, count, error }) => ({ rule, key, count, error }));
    return { counters: this.#counters, total: this.#total, keys: keys.sort(heaviestFirst) };
  }

  /** A new counter, or the smallest one, which then counts for the new key and keeps its count as the error. */
  #slotFor(rule: string, key: string): Slot {
    let slot: Slot;
    if (this.#slots.length < this.#counters) {
      slot = { rule, key, count: 0, error: 0 };
      this.#slots.push(slot);
    } else {
      slot = this.#smallest();
      const keys = this.#byRule.get(slot.rule);
      keys?.delete(slot.key);
      if (keys?.size === 0) this.#byRule.delete(slot.rule);
      slot.rule = rule;
      slot.key = key;
      slot.error = slot.count;
    }
    getOrMake(this.#byRule, rule, () => new Map()).set(key, slot);
    return slot;
  }

  /** The slot with the smallest count. */
  #smallest(): Slot {
    for (;;) {
      for (; this.#next < this.#slots.length; this.#next++) {
        const slot = this.#slots[this.#next] as Slot;
        if (slot.count === this.#least) return slot;
      }
      this.#least = Math.min(...this.#slots.map(({ count }) => count));
      this.#next = 0;
    }
  }
}

/** A rule's name and a key as one string. Both can hold anything, so the name's length goes first. */
export function ruleKey(rule: string, key: string): string {
  return `${rule.length}:${rule}${key}`;
}

/**
 * Merges summaries so that all bounds hold for the sum of their counts. A full sketch may have counted a key that it no longer knows, up to its
 * smallest count.
 */
export function mergeSummaries(summaries: readonly Summary[], counters: number): Summary {
  let total = 0;
  /** What a key may have had in all full sketches together. */
  let unknown = 0;
  const merged = new Map<string, Slot>();
  for (const { counters: most, total: part, keys } of summaries) {
    total += part;
    const least = keys.length < most ? 0 : (keys[keys.length - 1]?.count ?? 0);
    unknown += least;
    for (const { rule, key, count, error, blocked } of keys) {
      const sum = getOrMake(merged, ruleKey(rule, key), (): Slot => ({ rule, key, count: 0, error: 0 }));
      sum.count += count - least;
      sum.error += error - least;
      if (blocked !== undefined && !(sum.blocked && sum.blocked.untilMs > blocked.untilMs)) sum.blocked = blocked;
    }
  }
  const keys = [...merged.values()].map((counter) => ({ ...counter, count: counter.count + unknown, error: counter.error + unknown }));
  return { counters, total, keys: keys.sort(heaviestFirst).slice(0, counters) };
}

function heaviestFirst(a: Counter, b: Counter): number {
  return b.count - a.count || a.error - b.error || compare(a.rule, b.rule) || compare(a.key, b.key);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
