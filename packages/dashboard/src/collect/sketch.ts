import type { KeyBlock } from "@floodgate/core/store";

/** One key of a sketch. Its true count is in [count - error, count]. */
export interface Counter {
  readonly rule: string;
  readonly key: string;
  readonly count: number;
  readonly error: number;
  /** The block or ban of the key, if it was rejected for one. */
  readonly blocked?: KeyBlock;
}

/** What is left of a sketch when it is sent or merged. */
export interface Summary {
  readonly counters: number;
  readonly total: number;
  /** Largest first. */
  readonly keys: readonly Counter[];
}

interface Slot {
  rule: string;
  key: string;
  count: number;
  error: number;
  at: number;
}

/** Longer keys are cut. Core's own keys have at most 200 characters, and a few more if they are escaped. */
const longestKey = 256;

/**
 * Counts the heaviest keys with a fixed number of counters (Space-Saving, Metwally et al. 2005). After N counts with m counters, no count is
 * more than N / m too high, none is too low, and each key above N / m has a counter. It is deterministic.
 */
export class Sketch {
  readonly #counters: number;
  readonly #byRule = new Map<string, Map<string, Slot>>();
  /** A binary heap, smallest count first. */
  readonly #heap: Slot[] = [];
  #total = 0;

  constructor(counters: number) {
    this.#counters = counters;
  }

  add(rule: string, wholeKey: string): void {
    const key = wholeKey.length > longestKey ? wholeKey.slice(0, longestKey) : wholeKey;
    this.#total++;
    const slot = this.#byRule.get(rule)?.get(key) ?? this.#slotFor(rule, key);
    slot.count++;
    this.#sink(slot);
  }

  summary(): Summary {
    const keys = this.#heap.map(({ rule, key, count, error }) => ({ rule, key, count, error }));
    return { counters: this.#counters, total: this.#total, keys: keys.sort(heaviestFirst) };
  }

  /** A new counter, or the smallest one, which then counts for the new key and keeps its count as the error. */
  #slotFor(rule: string, key: string): Slot {
    let slot: Slot;
    if (this.#heap.length < this.#counters) {
      slot = { rule, key, count: 0, error: 0, at: this.#heap.length };
      this.#heap.push(slot);
      this.#rise(slot);
    } else {
      slot = this.#heap[0] as Slot;
      const keys = this.#byRule.get(slot.rule);
      keys?.delete(slot.key);
      if (keys?.size === 0) this.#byRule.delete(slot.rule);
      slot.rule = rule;
      slot.key = key;
      slot.error = slot.count;
    }
    let keys = this.#byRule.get(rule);
    if (keys === undefined) {
      keys = new Map();
      this.#byRule.set(rule, keys);
    }
    keys.set(key, slot);
    return slot;
  }

  #sink(slot: Slot): void {
    const heap = this.#heap;
    for (;;) {
      const left = 2 * slot.at + 1;
      if (left >= heap.length) return;
      const right = left + 1;
      const least = right < heap.length && (heap[right] as Slot).count < (heap[left] as Slot).count ? right : left;
      if ((heap[least] as Slot).count >= slot.count) return;
      this.#swap(slot, heap[least] as Slot);
    }
  }

  #rise(slot: Slot): void {
    while (slot.at > 0) {
      const parent = this.#heap[(slot.at - 1) >> 1] as Slot;
      if (parent.count <= slot.count) return;
      this.#swap(slot, parent);
    }
  }

  #swap(a: Slot, b: Slot): void {
    const at = a.at;
    a.at = b.at;
    b.at = at;
    this.#heap[a.at] = a;
    this.#heap[b.at] = b;
  }
}

/** A rule's name and a key as one string. Both can hold anything, so the name's length goes first. */
export function ruleKey(rule: string, key: string): string {
  return `${rule.length}:${rule}${key}`;
}

/**
 * Merges summaries so that all bounds hold for the sum of their counts: a key that a full sketch does not know may have had up to its
 * smallest count there.
 */
export function mergeSummaries(summaries: readonly Summary[], counters: number): Summary {
  let total = 0;
  /** What a key may have had in all full sketches together. */
  let unknown = 0;
  const merged = new Map<string, { rule: string; key: string; count: number; error: number; blocked?: KeyBlock }>();
  for (const { counters: most, total: part, keys } of summaries) {
    total += part;
    const least = keys.length < most ? 0 : (keys[keys.length - 1]?.count ?? 0);
    unknown += least;
    for (const { rule, key, count, error, blocked } of keys) {
      const id = ruleKey(rule, key);
      const known = merged.get(id);
      if (known === undefined) merged.set(id, { rule, key, count: count - least, error: error - least, ...(blocked && { blocked }) });
      else {
        known.count += count - least;
        known.error += error - least;
        if (blocked !== undefined && !(known.blocked && known.blocked.untilMs > blocked.untilMs)) known.blocked = blocked;
      }
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
