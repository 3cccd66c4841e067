/** The numbers of a slot. They are needed for each decision, so they lie in one cache line. */
export const field = { handle: 0, group: 1, state: 2 } as const;
const PLACE = 3;
const width = 4;
/** A slot's place in a heap takes the lower bits of its number, and a mark the upper ones. */
const placeBits = 24;
const placeMask = (1 << placeBits) - 1;
/** The neighbours of a slot in a list. */
const links = 2;
/** Keys of a page, as a power of two. */
const pageBits = 12;
const pageMask = (1 << pageBits) - 1;

/** A number for each key, and a few numbers about each. The operating system provides their memory when it is first used. */
export class Slots {
  #numbers: Int32Array;
  #links: Int32Array;
  readonly #keys: string[][] = [];
  /** The first free slot. Each one links to the next. */
  #free = -1;
  #size = 0;
  /** Slots that have ever been in use. */
  #end = 0;

  constructor(capacity: number) {
    this.#numbers = new Int32Array(capacity * width);
    this.#links = new Int32Array(capacity * links);
  }

  /** Slots in use. */
  get size(): number {
    return this.#size;
  }

  /** No slot in use is at or above it. */
  get end(): number {
    return this.#end;
  }

  get(slot: number, which: number): number {
    return this.#numbers[slot * width + which] as number;
  }

  set(slot: number, which: number, value: number): void {
    this.#numbers[slot * width + which] = value;
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
    return (this.#keys[slot >>> pageBits] as string[])[slot & pageMask] as string;
  }

  add(key: string): number {
    let slot = this.#free;
    if (slot >= 0) {
      this.#free = this.next(slot);
    } else {
      slot = this.#end++;
      if (slot >>> pageBits === this.#keys.length) this.#keys.push([]);
      if (slot * width === this.#numbers.length) this.#enlarge();
    }
    (this.#keys[slot >>> pageBits] as string[])[slot & pageMask] = key;
    this.#size++;
    return slot;
  }

  delete(slot: number): void {
    (this.#keys[slot >>> pageBits] as string[])[slot & pageMask] = "";
    this.setNext(slot, this.#free);
    this.#free = slot;
    this.#size--;
  }

  /** Only for one request of more keys than the table may hold. */
  #enlarge(): void {
    this.#numbers = twice(this.#numbers);
    this.#links = twice(this.#links);
  }
}

function twice(numbers: Int32Array): Int32Array {
  const larger = new Int32Array(2 * numbers.length);
  larger.set(numbers);
  return larger;
}
