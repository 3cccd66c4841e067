import { LRUCache } from "lru-cache";
import { HeldKeys, type Use } from "./held-keys.js";

/** From this share of its limit on, a key is out of reach of fresh ones. */
const heldShare = 0.5;
/** Of so many keys that were idle longest, the one that has used least goes. */
const candidates = 8;
/** Held keys looked at for each that comes: over time all are, so that none is held in vain. */
const refreshed = 2;

/** How much the key behind a handle has used, or undefined if there is nothing to remember. */
export type Assess = (key: string, handle: number) => Use | undefined;

/**
 * At most `maxKeys` keys and the handles of their states. Open keys lie in an LRU cache. Those that have used at least half
 * of their limit are held apart, where spraying fresh keys cannot reach them: only when no key is open does one of them go.
 */
export class KeyTable {
  readonly #maxKeys: number;
  readonly #open: LRUCache<string, number>;
  readonly #held = new HeldKeys();
  readonly #assess: Assess;
  readonly #drop: (key: string, handle: number, live: boolean) => void;
  readonly #idle: string[] = [];

  /** `drop` is told each key that goes to make room, and whether it still had something to remember. */
  constructor(maxKeys: number, assess: Assess, drop: (key: string, handle: number, live: boolean) => void) {
    this.#maxKeys = maxKeys;
    this.#open = new LRUCache({ max: maxKeys });
    this.#assess = assess;
    this.#drop = drop;
  }

  get size(): number {
    return this.#open.size + this.#held.size;
  }

  /** The handle of a key, which counts as a use of it; or undefined. */
  get(key: string): number | undefined {
    return this.#open.get(key) ?? (this.#held.size === 0 ? undefined : this.#held.get(key));
  }

  /** Takes in a key that is not there, and makes room for it first. */
  add(key: string, handle: number): void {
    if (this.size >= this.#maxKeys) this.#makeRoom();
    this.#open.set(ownText(key), handle);
  }

  /** Gives a key another block. */
  move(key: string, handle: number): void {
    if (this.#open.has(key)) this.#open.set(key, handle);
    else this.#held.move(key, handle);
  }

  delete(key: string): void {
    if (!this.#open.delete(key)) this.#held.delete(key);
  }

  /** Tells that a key has used so much: from half of its limit on it is held. Answers whether it is. */
  hold(key: string, handle: number, use: Use): boolean {
    if (use.share < heldShare) return false;
    if (this.#open.delete(key)) this.#held.hold(ownText(key), handle, use);
    return true;
  }

  #makeRoom(): void {
    for (let i = 0; i < refreshed && this.#held.size > 0; i++) this.#refresh(this.#held.next());
    if (this.size < this.#maxKeys) return;
    if (this.#open.size > 0) this.#dropOpen();
    else this.#dropHeld();
  }

  /** Looks again at a held key: gone if there is nothing to remember, open again below half. */
  #refresh(key: string): boolean {
    const handle = this.#held.get(key) as number;
    const use = this.#assess(key, handle);
    if (use !== undefined && use.share >= heldShare) {
      this.#held.update(key, use);
      return true;
    }
    this.#held.delete(key);
    if (use === undefined) this.#drop(key, handle, false);
    else this.#open.set(key, handle);
    return false;
  }

  #dropOpen(): void {
    const idle = this.#idle;
    idle.length = 0;
    let victim = "";
    let handle = 0;
    let least = Number.POSITIVE_INFINITY;
    let live = true;
    for (const [key, itsHandle] of this.#open.rentries() as Iterable<[string, number]>) {
      idle.push(key);
      const use = this.#assess(key, itsHandle);
      live = use !== undefined;
      if (use === undefined || use.share < least) {
        victim = key;
        handle = itsHandle;
        least = use?.share ?? 0;
      }
      if (!live || idle.length === candidates) break;
    }
    // Those that have used more than the one that goes are spared for a round.
    if (live && idle[0] !== victim) for (const key of idle) if (key !== victim) this.#open.get(key);
    this.#open.delete(victim);
    this.#drop(victim, handle, live);
  }

  #dropHeld(): void {
    // A key's share may have grown since it was ordered; one look puts it in its place.
    for (let looks = 0; looks < candidates; looks++) {
      const key = this.#held.first();
      if (!this.#refresh(key)) {
        if (this.size >= this.#maxKeys) this.#dropOpen();
        return;
      }
      if (this.#held.first() === key) break;
    }
    const key = this.#held.first();
    const handle = this.#held.get(key) as number;
    this.#held.delete(key);
    this.#drop(key, handle, true);
  }
}

/**
 * The text in a string of its own: a part of a longer one (an address in a header of kilobytes) would keep all of that in
 * memory. V8 copies parts of up to 12 characters itself, and what JSON reads is new.
 */
function ownText(text: string): string {
  return text.length <= 12 ? text : JSON.parse(JSON.stringify(text));
}
