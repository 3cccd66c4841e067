/** Each entry has 4 children. So 2^23 items make at most 12 levels. */
const children = 4;

/** Items (whole numbers), the lowest rank first; of equal ranks, the one added last tends to be first. An item is named by its place. */
export class MinHeap {
  readonly #ranks: number[] = [];
  readonly #items: number[] = [];
  /** Tells the owner the place of each item that moves. */
  readonly #moved: (item: number, place: number) => void;

  constructor(moved: (item: number, place: number) => void) {
    this.#moved = moved;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The item with the lowest rank, or -1 if the heap is empty. */
  get first(): number {
    return this.#items[0] ?? -1;
  }

  /** The lowest rank, or Infinity if the heap is empty. */
  get lowest(): number {
    return this.#ranks[0] ?? Number.POSITIVE_INFINITY;
  }

  rankAt(place: number): number {
    return this.#ranks[place] as number;
  }

  add(item: number, rank: number): void {
    this.#ranks.push(rank);
    this.#settle(this.#items.push(item) - 1, item, rank);
  }

  delete(place: number): void {
    const item = this.#items.pop() as number;
    const rank = this.#ranks.pop() as number;
    if (place < this.#items.length) this.#settle(place, item, rank);
  }

  #put(place: number, item: number, rank: number): void {
    this.#ranks[place] = rank;
    this.#items[place] = item;
    this.#moved(item, place);
  }

  /** Fills a free place: moves what is above or below it there, until the item fits. */
  #settle(free: number, item: number, rank: number): void {
    const { length } = this.#items;
    let place = free;
    while (place > 0) {
      const parent = Math.floor((place - 1) / children);
      const above = this.rankAt(parent);
      if (above < rank) break;
      this.#put(place, this.#items[parent] as number, above);
      place = parent;
    }
    for (let first = children * place + 1; first < length; first = children * place + 1) {
      let least = first;
      for (let i = first + 1; i < Math.min(first + children, length); i++) if (this.rankAt(i) < this.rankAt(least)) least = i;
      if (this.rankAt(least) >= rank) break;
      this.#put(place, this.#items[least] as number, this.rankAt(least));
      place = least;
    }
    this.#put(place, item, rank);
  }
}
