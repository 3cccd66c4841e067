import type { Cells } from "@floodgate/core/store";
import { Slabs } from "./slabs.js";

/** The numbers of a slot. They are needed for each decision, so they lie in one cache line. */
export const field = { group: 0, state: 1 } as const;
/** The handle of a state that lies in the slabs; 0 if it lies beside its slot. */
const HANDLE = 2;
const PLACE = 3;
const width = 4;
/** A slot's place in a heap takes the lower bits of its number, and a mark the upper ones. */
const placeBits = 24;
const placeMask = (1 << placeBits) - 1;
/** The neighbours of a slot in a list. */
const links = 2;
/** Slots of a page, as a power of two. */
const pageBits = 10;
const pageSize = 1 << pageBits;
const pageMask = pageSize - 1;
/** The most cells of a state that lies beside its slot. */
const widest = 8;

/** Slots whose states have one width. A state's cells are found by its slot alone, so a decision waits for memory once less. */
class Page {
  /** Cells of each state; 0 if the states lie in the slabs. */
  readonly width: number;
  readonly cells: Cells;
  readonly keys: string[] = [];

  constructor(cellsOfState: number) {
    this.width = cellsOfState;
    this.cells = new Float64Array(cellsOfState * pageSize);
  }
}

/** A number for each key, its state, and a few numbers about it. The operating system provides most of the memory when it is first used. */
export class Slots {
  #numbers: Int32Array;
  #links: Int32Array;
  readonly #pages: Page[] = [];
  readonly #slabs = new Slabs();
  /** By width, the first free slot. Each one links to the next. */
  readonly #free = new Int32Array(widest + 1).fill(-1);
  /** By width, the first slot of the newest page that was never in use; a multiple of the page's size if there is none. */
  readonly #fresh = new Int32Array(widest + 1);
  #size = 0;

  constructor(capacity: number) {
    // Of each width, a page may be partly used.
    const slots = (Math.ceil(capacity / pageSize) + widest + 1) * pageSize;
    this.#numbers = new Int32Array(slots * width);
    this.#links = new Int32Array(slots * links);
  }

  /** Slots in use. */
  get size(): number {
    return this.#size;
  }

  /** No slot in use is at or above it. */
  get end(): number {
    return this.#pages.length << pageBits;
  }

  get(slot: number, which: number): number {
    return this.#numbers[slot * width + which] as number;
  }

  set(slot: number, which: number, value: number): void {
    this.#numbers[slot * width + which] = value;
  }

  /** The array that a state lies in. */
  cells(slot: number): Cells {
    const handle = this.get(slot, HANDLE);
    return handle === 0 ? this.#page(slot).cells : this.#slabs.cells(handle);
  }

  /** Where in that array the state begins. */
  at(slot: number): number {
    const handle = this.get(slot, HANDLE);
    return handle === 0 ? (slot & pageMask) * this.#page(slot).width : this.#slabs.at(handle);
  }

  /** The array of a state, and where in it the state begins; undefined without a slot. */
  locate(slot: number | undefined): [cells: Cells, at: number] | undefined {
    return slot === undefined ? undefined : [this.cells(slot), this.at(slot)];
  }

  /** How many cells the state may take there. */
  width(slot: number): number {
    const handle = this.get(slot, HANDLE);
    return handle === 0 ? this.#page(slot).width : this.#slabs.slab(handle).width;
  }

  /** Moves a state to where it may take more cells. */
  enlarge(slot: number, size: number): void {
    const handle = this.#slabs.allocate(size);
    const at = this.at(slot);
    this.#slabs.cells(handle).set(this.cells(slot).subarray(at, at + this.width(slot)), this.#slabs.at(handle));
    this.#clear(slot);
    this.set(slot, HANDLE, handle);
  }

  place(slot: number): number {
    return (this.#numbers[slot * width + PLACE] as number) & placeMask;
  }

  setPlace(slot: number, place: number): void {
    this.#numbers[slot * width + PLACE] = ((this.#numbers[slot * width + PLACE] as number) & ~placeMask) | place;
  }

  mark(slot: number): number {
    return (this.#numbers[slot * width + PLACE] as number) >>> placeBits;
  }

  setMark(slot: number, mark: number): void {
    this.#numbers[slot * width + PLACE] = this.place(slot) | (mark << placeBits);
  }

  next(slot: number): number {
    return this.#links[slot * links] as number;
  }

  previous(slot: number): number {
    return this.#links[slot * links + 1] as number;
  }

  setNext(slot: number, next: number): void {
    this.#links[slot * links] = next;
  }

  setPrevious(slot: number, previous: number): void {
    this.#links[slot * links + 1] = previous;
  }

  key(slot: number): string {
    return this.#page(slot).keys[slot & pageMask] as string;
  }

  /** A slot for a key, with zeros for a state of `size` cells. */
  add(key: string, size: number): number {
    const cells = size <= widest ? size : 0;
    const slot = this.#take(cells);
    if (cells === 0) this.set(slot, HANDLE, this.#slabs.allocate(size));
    this.#page(slot).keys[slot & pageMask] = key;
    this.#size++;
    return slot;
  }

  delete(slot: number): void {
    const page = this.#page(slot);
    page.keys[slot & pageMask] = "";
    this.#clear(slot);
    this.setNext(slot, this.#free[page.width] as number);
    this.#free[page.width] = slot;
    this.#size--;
  }

  #page(slot: number): Page {
    return this.#pages[slot >>> pageBits] as Page;
  }

  #take(cells: number): number {
    const free = this.#free[cells] as number;
    if (free >= 0) {
      this.#free[cells] = this.next(free);
      return free;
    }
    let slot = this.#fresh[cells] as number;
    if ((slot & pageMask) === 0) {
      slot = this.end;
      this.#pages.push(new Page(cells));
      if (slot * width === this.#numbers.length) this.#addRoom();
    }
    this.#fresh[cells] = slot + 1;
    return slot;
  }

  /** Leaves zeros beside the slot, and nothing in the slabs. */
  #clear(slot: number): void {
    const handle = this.get(slot, HANDLE);
    if (handle !== 0) {
      this.#slabs.free(handle);
      this.set(slot, HANDLE, 0);
      return;
    }
    const { cells, width: count } = this.#page(slot);
    const at = (slot & pageMask) * count;
    for (let i = at; i < at + count; i++) cells[i] = 0;
  }

  /** Only for one request of more keys than the table may hold. */
  #addRoom(): void {
    this.#numbers = twice(this.#numbers);
    this.#links = twice(this.#links);
  }
}

function twice(numbers: Int32Array): Int32Array {
  const larger = new Int32Array(2 * numbers.length);
  larger.set(numbers);
  return larger;
}
