import type { Slots } from "./slots.js";

/** The class of keys that have nothing left, or are in debt. */
export const blocked = 255;
const classes = 256;
const none = -1;

/** The class of a key: by how much it has used of its limit. For limits of up to 255 each unit makes a class of its own. */
export function classOf(used: number, limit: number): number {
  return used >= limit ? blocked : Math.max(0, Math.floor((used * blocked) / limit));
}

/** Keys by class, in doubly linked lists, those that came first at the head. */
export class UseLists {
  readonly #slots: Slots;
  readonly #heads = new Int32Array(classes).fill(none);
  readonly #tails = new Int32Array(classes).fill(none);
  /** A bit for each class that has keys. */
  readonly #present = new Int32Array(classes / 32);

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /** The key that came first of those in the lowest class, or -1 if all are blocked. */
  get first(): number {
    for (let word = 0; word < this.#present.length; word++) {
      const bits = this.#present[word] as number;
      if (bits === 0) continue;
      const lowest = 32 * word + 31 - Math.clz32(bits & -bits);
      return lowest === blocked ? none : (this.#heads[lowest] as number);
    }
    return none;
  }

  add(slot: number, use: number): void {
    const last = this.#tails[use] as number;
    this.#slots.setPrevious(slot, last);
    this.#slots.setNext(slot, none);
    this.#tails[use] = slot;
    if (last !== none) {
      this.#slots.setNext(last, slot);
      return;
    }
    this.#heads[use] = slot;
    (this.#present[use >>> 5] as number) |= 1 << (use & 31);
  }

  delete(slot: number, use: number): void {
    const before = this.#slots.previous(slot);
    const after = this.#slots.next(slot);
    if (before === none) this.#heads[use] = after;
    else this.#slots.setNext(before, after);
    if (after === none) this.#tails[use] = before;
    else this.#slots.setPrevious(after, before);
    if (before === none && after === none) (this.#present[use >>> 5] as number) &= ~(1 << (use & 31));
  }
}
