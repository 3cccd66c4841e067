import type { Limit } from "@floodgate/core/store";
import { type Kind, Kinds } from "./kinds.js";
import { nowhere } from "./min-heap.js";
import { field, Slots } from "./slots.js";
import { blocked, UseLists } from "./use-lists.js";

/** How many keys a full table looks at again for each new key. Use declines by itself, so all keys are looked at in turn. */
const refreshed = 2;
/** The most looks that each step of an eviction takes. */
const looks = 8;

/** How much of its limit a key has used, as a class, and when its state ends. */
export interface Use {
  use: number;
  resetAtMs: number;
}

/** The use of the key that has this slot, or undefined if there is nothing to remember. */
export type Assess = (kind: Kind, slot: number) => Use | undefined;

/** Called for each evicted key; `live` unless the key had expired. */
export type Drop = (kind: Kind, key: string, live: boolean) => void;

/**
 * At most `maxKeys` keys and their states. A full table evicts in constant time, in this order: keys whose state
 * has ended; keys that are not blocked, by use, the least first; blocked keys, nearest reset first.
 *
 * A key takes part in that order only once it is placed. So what a request has added or withdrawn cannot be evicted
 * before it is placed again, at the end of the request.
 */
export class KeyTable {
  readonly #maxKeys: number;
  readonly #assess: Assess;
  readonly #drop: Drop;
  /** The keys' numbers and states. */
  readonly slots: Slots;
  readonly #kinds: Kinds;
  readonly #lists: UseLists;
  /** The next slot to look at again. */
  #hand = 0;
  /** States made so far, modulo 2^32. */
  #states = 0;

  constructor(maxKeys: number, assess: Assess, drop: Drop) {
    this.#maxKeys = maxKeys;
    this.#assess = assess;
    this.#drop = drop;
    this.slots = new Slots(maxKeys);
    this.#lists = new UseLists(this.slots);
    this.#kinds = new Kinds(maxKeys, (slot, place) => this.slots.setPlace(slot, place));
  }

  get size(): number {
    return this.slots.size;
  }

  kindOf(limit: Limit): Kind {
    return this.#kinds.of(limit);
  }

  /** The slot of a key, if it is there. Unlike `kindOf` it adds no kind. */
  find(limit: Limit, key: string): number | undefined {
    return this.#kinds.find(limit)?.slots.get(key);
  }

  /** The number of the state in a slot: each state of this table has its own, until 2^32 of them have been made. */
  state(slot: number): number {
    return this.slots.get(slot, field.state);
  }

  /** Gives a slot's state a number of its own. */
  beginState(slot: number): number {
    this.slots.set(slot, field.state, this.#states++);
    return this.state(slot);
  }

  /**
   * Adds a key that is not there, with zeros for a state of `size` cells, and evicts another key if the table is full. The caller must
   * place the new key.
   */
  add(kind: Kind, key: string, size: number, nowMs: number): number {
    if (this.size >= this.#maxKeys) this.#makeRoom(kind, nowMs);
    const slot = this.slots.add(ownText(key), size);
    this.slots.set(slot, field.group, kind.id << 8);
    this.beginState(slot);
    kind.slots.set(this.slots.key(slot), slot);
    return slot;
  }

  /** Whether this many more keys fit. */
  hasRoomFor(keys: number): boolean {
    return this.size + keys <= this.#maxKeys;
  }

  /** Puts a key where its use and its reset belong. */
  place(slot: number, use: number, resetAtMs: number): void {
    const group = this.slots.get(slot, field.group);
    const place = this.slots.place(slot);
    const mark = markOf(resetAtMs);
    if (place === nowhere) {
      const kind = this.#kinds.at(group >>> 8);
      kind.byReset.add(slot, resetAtMs);
      this.slots.setMark(slot, mark);
      this.#kinds.sizeChanged(kind);
      this.#kinds.resetChanged(kind);
    } else {
      if (this.slots.mark(slot) !== mark) {
        const kind = this.#kinds.at(group >>> 8);
        kind.byReset.change(place, resetAtMs);
        this.slots.setMark(slot, mark);
        this.#kinds.resetChanged(kind);
      }
      const before = group & 0xff;
      if (before === use) return;
      if (before !== blocked) this.#lists.delete(slot, before);
    }
    this.slots.set(slot, field.group, (group & ~0xff) | use);
    if (use !== blocked) this.#lists.add(slot, use);
  }

  /** Makes the next `place` of a key compare its whole reset, not only the mark. */
  remark(slot: number): void {
    this.slots.setMark(slot, ~this.slots.mark(slot));
  }

  /** Takes a key out of the order of eviction, until it is placed again. */
  withdraw(slot: number): void {
    const place = this.slots.place(slot);
    if (place === nowhere) return;
    const group = this.slots.get(slot, field.group);
    const kind = this.#kinds.at(group >>> 8);
    kind.byReset.delete(place);
    this.#kinds.sizeChanged(kind);
    this.#kinds.resetChanged(kind);
    const use = group & 0xff;
    if (use !== blocked) this.#lists.delete(slot, use);
  }

  delete(slot: number): void {
    this.withdraw(slot);
    this.#kindAt(slot).slots.delete(this.slots.key(slot));
    this.slots.delete(slot);
  }

  /** Evicts until the bound holds again. Only a request of more than `maxKeys` keys makes this necessary. */
  trim(nowMs: number): void {
    while (this.size > this.#maxKeys) if (!this.#evict(undefined, nowMs)) return;
  }

  #kindAt(slot: number): Kind {
    return this.#kinds.at(this.slots.get(slot, field.group) >>> 8);
  }

  #makeRoom(kind: Kind, nowMs: number): void {
    this.#lookAgain(refreshed);
    while (this.size >= this.#maxKeys) if (!this.#evict(kind, nowMs)) return;
  }

  /** Drops one key to make room for a key of `newcomer`. Answers false if no key can be dropped. */
  #evict(newcomer: Kind | undefined, nowMs: number): boolean {
    return this.#evictEnded(nowMs) || this.#evictOpen() || this.#evictBlocked(newcomer);
  }

  #evictEnded(nowMs: number): boolean {
    for (let i = 0; i < looks; i++) {
      const { byReset } = this.#kinds.nearest();
      if (byReset.lowest > nowMs) return false;
      if (this.#look(byReset.first) === undefined) return true;
    }
    return false;
  }

  #evictOpen(): boolean {
    for (let i = 0; i < looks; i++) {
      const slot = this.#lists.first;
      if (slot < 0) return false;
      const before = this.slots.get(slot, field.group) & 0xff;
      const found = this.#look(slot);
      if (found === undefined) return true;
      if (found <= before) return this.#remove(slot, true);
    }
    const slot = this.#lists.first;
    return slot >= 0 && this.#remove(slot, true);
  }

  #evictBlocked(newcomer: Kind | undefined): boolean {
    // Some may not be blocked any more.
    const { size } = this;
    this.#lookAgain(2 * refreshed);
    if (this.size < size) return true;
    if (this.#lists.first >= 0) return this.#remove(this.#lists.first, true);
    for (let i = 0; i < looks; i++) {
      const { byReset } = this.#crowded(newcomer);
      if (byReset.size === 0) return false;
      const slot = byReset.first;
      const found = this.#look(slot);
      if (found === undefined) return true;
      if (found < blocked || byReset.first === slot) return this.#remove(slot, true);
    }
    return this.#remove(this.#crowded(newcomer).byReset.first, true);
  }

  /**
   * The kind that must give up a blocked key: the one with the most keys. So no kind pushes out another one's blocked keys
   * beyond its fair share, however long its own keys stay blocked.
   */
  #crowded(newcomer: Kind | undefined): Kind {
    const largest = this.#kinds.largest();
    if (newcomer !== undefined && newcomer.byReset.size >= largest.byReset.size) return newcomer;
    const nearest = this.#kinds.nearest();
    return nearest.byReset.size === largest.byReset.size ? nearest : largest;
  }

  /** Looks at some keys again, one after the other, round and round. */
  #lookAgain(times: number): void {
    for (let i = 0; i < times; i++) {
      if (this.#hand >= this.slots.end) this.#hand = 0;
      const slot = this.#hand++;
      if (this.slots.end > 0 && this.slots.place(slot) !== nowhere) this.#look(slot);
    }
  }

  /** Places a key by its use of now, and answers that; drops it and answers undefined if there is nothing to remember. */
  #look(slot: number): number | undefined {
    const found = this.#assess(this.#kindAt(slot), slot);
    if (found === undefined) {
      this.#remove(slot, false);
      return undefined;
    }
    const { use } = found;
    this.remark(slot);
    this.place(slot, use, found.resetAtMs);
    return use;
  }

  #remove(slot: number, live: boolean): true {
    const kind = this.#kindAt(slot);
    const key = this.slots.key(slot);
    this.delete(slot);
    this.#drop(kind, key, live);
    return true;
  }
}

/**
 * A few bits of a reset. A key whose mark is the same counts as in its place, so that most decisions need not read the heap. Where
 * the reset is another one all the same, that is noticed when the key is about to go.
 */
function markOf(resetAtMs: number): number {
  return Math.imul(resetAtMs | 0, 0x9e3779b1) >>> 24;
}

/**
 * A copy of the text. A part of a longer string (an address in a header of kilobytes) would keep all of it in memory. V8 itself
 * copies parts of up to 12 characters, and what JSON reads is new.
 */
function ownText(text: string): string {
  return text.length <= 12 ? text : JSON.parse(JSON.stringify(text));
}
