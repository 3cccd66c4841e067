/** Entries of a page, as a power of two. A heap grows by whole pages. Only its first page is ever copied, while it is small. */
const pageBits = 12;
const pageSize = 1 << pageBits;
const pageMask = pageSize - 1;
/** Initial size of the first page: there may be many heaps with few items. */
const fewest = 64;
/** Each entry has 8 children, and the 8 ranks of siblings share one cache line. 2^23 items make at most 8 levels. */
const childBits = 3;
const children = 1 << childBits;
/** The place of the root. It makes the first child of each entry lie at a multiple of 8. */
const root = children - 1;

/** The place of an item that is in no heap. No item is ever placed there, because the root comes later. */
export const nowhere = 0;

/**
 * Items (whole numbers) ordered by rank, the lowest first. Of items with equal ranks the one added last tends to come first.
 * The heap tells its owner the place of each item that moves; the owner names an item by that place.
 */
export class MinHeap {
  readonly #ranks: Float64Array[] = [];
  readonly #items: Int32Array[] = [];
  readonly #moved: (item: number, place: number) => void;
  #end = root;
  #capacity = 0;

  constructor(moved: (item: number, place: number) => void) {
    this.#moved = moved;
  }

  get size(): number {
    return this.#end - root;
  }

  /** The item with the lowest rank. The heap must not be empty. */
  get first(): number {
    return this.#itemAt(root);
  }

  /** The lowest rank, or Infinity if the heap is empty. */
  get lowest(): number {
    return this.#end === root ? Number.POSITIVE_INFINITY : this.rankAt(root);
  }

  rankAt(place: number): number {
    return (this.#ranks[place >>> pageBits] as Float64Array)[place & pageMask] as number;
  }

  add(item: number, rank: number): void {
    const place = this.#end++;
    if (place >= this.#capacity) this.#grow();
    this.#rise(place, item, rank);
  }

  /** Gives the item at a place another rank. */
  change(place: number, rank: number): void {
    if (rank < this.rankAt(place)) this.#rise(place, this.#itemAt(place), rank);
    else if (firstChild(place) < this.#end) this.#sink(place, this.#itemAt(place), rank);
    else this.#rank(place, rank);
  }

  delete(place: number): void {
    this.#moved(this.#itemAt(place), nowhere);
    const last = --this.#end;
    if (place !== last) {
      const item = this.#itemAt(last);
      const rank = this.rankAt(last);
      if (rank < this.rankAt(place)) this.#rise(place, item, rank);
      else this.#sink(place, item, rank);
    }
    // One empty page stays, so that a size that swings around a page's edge makes no garbage.
    if ((last >>> pageBits) + 2 < this.#ranks.length) {
      this.#ranks.pop();
      this.#items.pop();
      this.#capacity -= pageSize;
    }
  }

  #grow(): void {
    const wanted = this.#capacity >= pageSize ? pageSize : Math.max(fewest, 2 * this.#capacity);
    const ranks = new Float64Array(wanted);
    const items = new Int32Array(wanted);
    if (this.#capacity < pageSize) {
      ranks.set(this.#ranks.pop() ?? []);
      items.set(this.#items.pop() ?? []);
      this.#capacity = 0;
    }
    this.#ranks.push(ranks);
    this.#items.push(items);
    this.#capacity += wanted;
  }

  #itemAt(place: number): number {
    return (this.#items[place >>> pageBits] as Int32Array)[place & pageMask] as number;
  }

  #rank(place: number, rank: number): void {
    (this.#ranks[place >>> pageBits] as Float64Array)[place & pageMask] = rank;
  }

  #put(place: number, item: number, rank: number): void {
    this.#rank(place, rank);
    (this.#items[place >>> pageBits] as Int32Array)[place & pageMask] = item;
    this.#moved(item, place);
  }

  #rise(from: number, item: number, rank: number): void {
    let place = from;
    while (place > root) {
      const parent = (place >>> childBits) + root - 1;
      const above = this.rankAt(parent);
      if (above < rank) break;
      this.#put(place, this.#itemAt(parent), above);
      place = parent;
    }
    this.#put(place, item, rank);
  }

  #sink(from: number, item: number, rank: number): void {
    let place = from;
    for (;;) {
      const first = firstChild(place);
      if (first >= this.#end) break;
      const ranks = this.#ranks[first >>> pageBits] as Float64Array;
      const at = first & pageMask;
      const count = Math.min(children, this.#end - first);
      let least = 0;
      for (let i = 1; i < count; i++) if ((ranks[at + i] as number) < (ranks[at + least] as number)) least = i;
      const below = ranks[at + least] as number;
      if (below >= rank) break;
      this.#put(place, this.#itemAt(first + least), below);
      place = first + least;
    }
    this.#put(place, item, rank);
  }
}

function firstChild(place: number): number {
  return (place - root + 1) << childBits;
}
