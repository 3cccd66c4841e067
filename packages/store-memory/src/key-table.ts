import { type Limit, outlastsMs } from "@floodgate/core/store";
import { type Keyspace, Keyspaces } from "./keyspaces.js";
import { idShift, pageBits, pageMask, Slots, use } from "./slots.js";
import { classOf, UseLists } from "./use-lists.js";

/** How many keys a full table repositions for each new key, in turn: the use of a key declines with time, without a call. */
const perNewKey = 3;
/** The most keys that a step of an eviction repositions, or the most keyspaces that it compares. */
const maxTries = 8;
/** A key that can pass is listed by what it had used at most so many classes ago: a quarter of its limit. */
export const slack = 64;

/** The link of a blocked key that says its place in the heap. */
const PLACE = 0;

/**
 * At most `maxKeys` keys and their states. A full table evicts in constant time: keys whose state has ended, as they are found; keys that
 * are not blocked, by use, about the least first; blocked keys, the nearest reset first.
 *
 * A key takes part in that order only once it is placed. What a request has added or withdrawn is placed at the end of the request.
 */
export class KeyTable {
  readonly maxKeys: number;
  readonly #onEvicted: (name: string, key: string) => void;
  readonly slots: Slots = new Slots();
  readonly keyspaces: Keyspaces;
  readonly #lists: UseLists = new UseLists(this.slots);
  /** The next slot to reposition. */
  #hand = 0;
  /** The next keyspace to compare. */
  #turn = 0;
  /** The keyspace that had to give up a blocked key last. */
  #largest: Keyspace | undefined;

  /** `onEvicted` is called for each evicted key that had not ended. */
  constructor(maxKeys: number, onEvicted: (name: string, key: string) => void) {
    this.maxKeys = maxKeys;
    this.#onEvicted = onEvicted;
    this.keyspaces = new Keyspaces(maxKeys, (slot, place) => this.slots.setLink(slot, PLACE, place));
  }

  /** Adds a key that is not there, with zeros for a state, and evicts another one if the table is full. The caller must place it. */
  add(keyspace: Keyspace, key: string, nowMs: number): number {
    if (this.slots.size >= this.maxKeys) this.#makeRoom(keyspace, nowMs);
    const own = ownText(key);
    const slot = this.slots.add(own, keyspace.id, keyspace.size);
    keyspace.slots.set(own, slot);
    return slot;
  }

  /** The slot of a key whose state has room for one more request: another one, with twice as much, if it has grown too large. That one must be placed. */
  withRoom(limit: Limit, slot: number): number {
    const { slots } = this;
    const from = slots.page(slot);
    const at = from.at(slot);
    const size = limit.algorithm.size(limit.policy, from.cells, at);
    if (size <= from.width) return slot;
    const keyspace = this.#keyspace(slot);
    const key = slots.key(slot);
    const larger = slots.add(key, keyspace.id, Math.max(size, 2 * from.width));
    const to = slots.page(larger);
    const toAt = to.at(larger);
    // The number of the state lies before its cells.
    to.numbers[2 * toAt - 2] = from.numbers[2 * at - 2] as number;
    to.cells.set(from.cells.subarray(at, at + from.width), toAt);
    this.withdraw(slot);
    slots.delete(slot);
    keyspace.slots.set(key, larger);
    return larger;
  }

  /** Puts a key where its use and its reset belong. */
  place(slot: number, useClass: number, resetAtMs: number): void {
    const { slots } = this;
    const { blocked } = this.#keyspace(slot);
    const isBlocked = useClass === use.blocked;
    if (slots.use(slot) === useClass && (!isBlocked || blocked.rankAt(slots.link(slot, PLACE)) === resetAtMs)) return;
    this.withdraw(slot);
    if (isBlocked) blocked.add(slot, resetAtMs);
    else this.#lists.add(slot, useClass);
    slots.setUse(slot, useClass);
  }

  /** Takes a key out of the order of eviction, until it is placed again. */
  withdraw(slot: number): void {
    const { slots } = this;
    const listed = slots.use(slot);
    if (listed === use.blocked) this.#keyspace(slot).blocked.delete(slots.link(slot, PLACE));
    else if (listed < use.blocked) this.#lists.delete(slot, listed);
    slots.setUse(slot, use.unplaced);
  }

  delete(slot: number): void {
    this.withdraw(slot);
    this.#keyspace(slot).slots.delete(this.slots.key(slot));
    this.slots.delete(slot);
  }

  /** Places a key by its current use, and returns its class. If nothing of it counts and it need not stay, it is deleted: undefined. */
  reposition(slot: number, nowMs: number, stays = false): number | undefined {
    const { smallest, largest, slowest } = this.#keyspace(slot);
    const { algorithm } = smallest;
    const page = this.slots.page(slot);
    const { cells } = page;
    const at = page.at(slot);
    let seen = algorithm.decide(smallest, cells, at, nowMs, 1, false);
    // What a small bucket never held, a large one may lack.
    if (seen.resetAfterMs === 0) seen = algorithm.decide(largest, cells, at, nowMs, 1, false);
    // Other plans may be slower than both.
    const endMs = Math.max(nowMs + seen.resetAfterMs, algorithm.endOf?.(slowest.policy, cells, at, nowMs) ?? 0);
    if (endMs <= nowMs && !stays) {
      this.delete(slot);
      return undefined;
    }
    const found = classOf(seen);
    this.place(slot, found, endMs);
    return found;
  }

  /**
   * Evicts until at most so many keys are left, or none can be dropped. Without `newcomer`, the keyspace of the key that needs room, the
   * request at hand had more than `maxKeys` keys.
   */
  trim(nowMs: number, most: number = this.maxKeys, newcomer?: Keyspace): void {
    while (this.slots.size > most && (this.#evictFirst(undefined, nowMs) || this.#evictFirst(this.#crowded(newcomer), nowMs)));
  }

  #keyspace(slot: number): Keyspace {
    return this.keyspaces.all[this.slots.tag(slot) >>> idShift] as Keyspace;
  }

  #makeRoom(newcomer: Keyspace, nowMs: number): void {
    this.#repositionNext(nowMs);
    for (let i = Math.min(maxTries, this.keyspaces.all.length); i > 0; i--) {
      const { blocked } = this.#nextKeyspace();
      // If all keys are listed as blocked, some may not be any more: first of all those nearest their reset.
      if (blocked.lowest <= nowMs || (blocked.size > 0 && this.#lists.first < 0)) this.reposition(blocked.first, nowMs);
    }
    this.trim(nowMs, this.maxKeys - 1, newcomer);
  }

  /**
   * Drops the first blocked key of a keyspace; without a keyspace, the first key that is not blocked. A key is repositioned before it is
   * dropped: it may have recovered, and then another key is the first. Returns false if no such key is left.
   */
  #evictFirst(from: Keyspace | undefined, nowMs: number): boolean {
    for (let i = 0; ; i++) {
      const slot = this.#first(from);
      if (slot < 0) return false;
      const listed = this.slots.use(slot);
      const found = i < maxTries ? this.reposition(slot, nowMs) : -1;
      if (found === undefined) return true;
      if (found < listed || (found === listed && this.#first(from) === slot)) return this.#evict(slot);
    }
  }

  #first(from: Keyspace | undefined): number {
    return from === undefined ? this.#lists.first : from.blocked.first;
  }

  /** The keyspace that must give up a blocked key: the one with the most, so that none loses more than its share. Blocks by hand stay. */
  #crowded(newcomer: Keyspace | undefined): Keyspace {
    const { length } = this.keyspaces.all;
    let best = newcomer ?? this.#nextKeyspace();
    for (let i = 0; i <= length && (i < maxTries || weightOf(best) === 0); i++) {
      const next = i === 0 ? (this.#largest ?? best) : this.#nextKeyspace();
      const more = weightOf(next) - weightOf(best);
      const isNearer = more === 0 && best !== newcomer && next.blocked.lowest < best.blocked.lowest;
      if (best.blocked.size === 0 || more > 0 || isNearer) best = next;
    }
    this.#largest = best;
    return best;
  }

  #nextKeyspace(): Keyspace {
    const { all } = this.keyspaces;
    return all[this.#turn++ % all.length] as Keyspace;
  }

  /** Repositions the next few keys, round and round. */
  #repositionNext(nowMs: number): void {
    const { pages } = this.slots;
    let left = Math.min(perNewKey, this.slots.size);
    // Every page twice at most, if all keys there are withdrawn.
    for (let turns = 2 * pages.length; left > 0 && turns > 0; ) {
      const page = pages[this.#hand >>> pageBits];
      if (page === undefined || page.used === 0 || (this.#hand & pageMask) >= page.begun) {
        this.#hand = page === undefined ? 0 : (this.#hand | pageMask) + 1;
        turns--;
        continue;
      }
      const slot = this.#hand++;
      if (this.slots.use(slot) > use.blocked) continue;
      left--;
      this.reposition(slot, nowMs);
    }
  }

  #evict(slot: number): true {
    this.#onEvicted(this.#keyspace(slot).smallest.name, this.slots.key(slot));
    this.delete(slot);
    return true;
  }
}

/** How many blocked keys it has; 0 if all were blocked by hand. */
function weightOf({ blocked }: Keyspace): number {
  return blocked.lowest < outlastsMs ? blocked.size : 0;
}

/** A copy: a part of a longer string would keep all of it in memory. V8 copies parts of up to 12 characters, and what it joins. */
function ownText(text: string): string {
  return text.length <= 12 ? text : [text[0], text.slice(1)].join("");
}
