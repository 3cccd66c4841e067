import type { Decision } from "@floodgate/core/store";
import { type Slots, use } from "./slots.js";

const none = -1;
const AFTER = 0;
const BEFORE = 1;

/** The class of a key: by how much it has used of its limit. For limits of up to 255 each unit makes a class of its own. */
export function classOf({ limit, remaining }: Decision): number {
  return remaining <= 0 ? use.blocked : Math.max(0, Math.floor(((limit - remaining) * use.blocked) / limit));
}

/** Keys that are not blocked, by class, in doubly linked lists, those that came first at the head. */
export class UseLists {
  readonly #slots: Slots;
  readonly #heads = new Int32Array(use.blocked).fill(none);
  readonly #tails = new Int32Array(use.blocked).fill(none);
  /** No class below it has keys. */
  #lowest = 0;

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /** The key that came first of those in the lowest class, or -1 if all lists are empty. */
  get first(): number {
    while (this.#heads[this.#lowest] === none) this.#lowest++;
    return this.#heads[this.#lowest] ?? none;
  }

  add(slot: number, useClass: number): void {
    const last = this.#tails[useClass] as number;
    this.#slots.setLink(slot, BEFORE, last);
    this.#slots.setLink(slot, AFTER, none);
    this.#tails[useClass] = slot;
    if (last === none) this.#heads[useClass] = slot;
    else this.#slots.setLink(last, AFTER, slot);
    if (useClass < this.#lowest) this.#lowest = useClass;
  }

  delete(slot: number, useClass: number): void {
    const before = this.#slots.link(slot, BEFORE);
    const after = this.#slots.link(slot, AFTER);
    if (before === none) this.#heads[useClass] = after;
    else this.#slots.setLink(before, AFTER, after);
    if (after === none) this.#tails[useClass] = before;
    else this.#slots.setLink(after, BEFORE, before);
  }
}
