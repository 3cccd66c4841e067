import type { Cells } from "@floodgate/core/store";

/** Slots of a page at most, as a power of two. A page never moves, so a store grows without copying. */
export const pageBits = 10;
export const pageMask: number = (1 << pageBits) - 1;
/** Cells of a page at most, unless one state has more: states of megabytes come one by one. */
const pageCells = 1 << 16;
/** Cells from which on widths are rounded up to powers of two, so that there are few kinds of pages however states vary. */
const exactWidths = 8;

/** Classes of use. A key below its limit has one of 0 to 254. */
export const use = {
  /** The key has nothing left, or is in debt. */
  blocked: 255,
  /** The key takes no part in the order of eviction now. */
  unplaced: 256,
  mask: 511,
} as const;
/** The second number of a free slot. It reads as no keyspace, and as no use. */
const noKey = -1;
/** A keyspace's id lies above the use in the second number of a slot. */
export const idShift = 9;

/** Slots whose states have one width. A slot's two numbers lie right before its state, so that a decision waits for memory once. */
export class Page {
  /** The most cells of a state. */
  readonly width: number;
  /** Cells from one state to the next. */
  readonly stride: number;
  /** How many slots are in use, and how many have ever been: the first ones. */
  used = 0;
  begun = 0;
  /** The state of slot `i` begins at `i * stride + 1`. */
  readonly cells: Cells;
  /** The same memory. The numbers of slot `i` are at `2 * i * stride`: the number of its state, then its keyspace and use. */
  readonly numbers: Int32Array;
  /** By slot, its neighbours in a list; or its place in the heap of blocked keys; or the next free slot. */
  readonly links: Int32Array;
  readonly keys: string[] = [];

  constructor(width: number) {
    this.width = width;
    this.stride = width + 1;
    const count = Math.max(1, Math.min(pageMask + 1, Math.floor(pageCells / this.stride)));
    this.cells = new Float64Array(count * this.stride);
    this.numbers = new Int32Array(this.cells.buffer);
    this.links = new Int32Array(2 * count);
  }

  /** Where in the cells the state of a slot begins. */
  at(slot: number): number {
    return (slot & pageMask) * this.stride + 1;
  }
}

/** A slot for each key: its text, its state, and a few numbers about it. A slot's number names its page and its place there. */
export class Slots {
  readonly pages: Page[] = [];
  /** States made so far, modulo 2^32. */
  #states = 0;
  /** By width, the first free slot, and the newest page. */
  readonly #free: number[] = [];
  readonly #newest: number[] = [];
  size = 0;
  /** How many slots have been deleted. */
  deleted = 0;

  page(slot: number): Page {
    return this.pages[slot >>> pageBits] as Page;
  }

  /** The cells that hold a state, and where it begins. */
  state(slot: number): [cells: Cells, at: number] {
    const page = this.page(slot);
    return [page.cells, page.at(slot)];
  }

  key(slot: number): string {
    return this.page(slot).keys[slot & pageMask] as string;
  }

  /** Its keyspace and use. */
  tag(slot: number): number {
    const page = this.page(slot);
    return page.numbers[2 * page.at(slot) - 1] as number;
  }

  use(slot: number): number {
    return this.tag(slot) & use.mask;
  }

  setUse(slot: number, value: number): void {
    const page = this.page(slot);
    page.numbers[2 * page.at(slot) - 1] = (this.tag(slot) & ~use.mask) | value;
  }

  /** One of the two links of a slot. */
  link(slot: number, which: 0 | 1): number {
    return this.page(slot).links[2 * (slot & pageMask) + which] as number;
  }

  setLink(slot: number, which: 0 | 1, value: number): void {
    this.page(slot).links[2 * (slot & pageMask) + which] = value;
  }

  /** A slot for a key, with zeros for a state of `size` cells. */
  add(key: string, keyspace: number, size: number): number {
    const slot = this.#take(size <= exactWidths ? size : 2 ** Math.ceil(Math.log2(size)));
    const page = this.page(slot);
    page.keys[slot & pageMask] = key;
    page.numbers[2 * page.at(slot) - 1] = (keyspace << idShift) | use.unplaced;
    page.used++;
    this.size++;
    this.beginState(slot);
    return slot;
  }

  /** Gives the state of a slot a number of its own, which no other state has until 2^32 of them were made. */
  beginState(slot: number): void {
    const page = this.page(slot);
    page.numbers[2 * page.at(slot) - 2] = this.#states++;
  }

  delete(slot: number): void {
    const page = this.page(slot);
    const at = page.at(slot);
    page.keys[slot & pageMask] = "";
    for (let i = at - 1; i < at + page.width; i++) page.cells[i] = 0;
    page.numbers[2 * at - 1] = noKey;
    this.setLink(slot, 0, this.#free[page.width] ?? -1);
    this.#free[page.width] = slot;
    page.used--;
    this.size--;
    this.deleted++;
  }

  #take(width: number): number {
    const free = this.#free[width] ?? -1;
    if (free >= 0) {
      this.#free[width] = this.link(free, 0);
      return free;
    }
    let newest = this.#newest[width] ?? -1;
    let page = this.pages[newest];
    if (page === undefined || 2 * page.begun === page.links.length) {
      page = new Page(width);
      newest = this.pages.push(page) - 1;
      this.#newest[width] = newest;
    }
    return (newest << pageBits) | page.begun++;
  }
}
