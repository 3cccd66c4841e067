/** Numbered items by rank, the lowest first; items of one rank by number. In flat arrays, so that a push makes no object. */
export class MinHeap {
  readonly #ranks: number[] = [];
  readonly #items: number[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** The lowest rank; Infinity if the heap is empty. */
  get lowest(): number {
    return this.#ranks[0] ?? Number.POSITIVE_INFINITY;
  }

  push(item: number, rank: number): void {
    let at = this.size;
    for (let parent = (at - 1) >> 1; at > 0 && !this.#isBefore(parent, item, rank); parent = (at - 1) >> 1) {
      this.#put(at, this.#items[parent] as number, this.#ranks[parent] as number);
      at = parent;
    }
    this.#put(at, item, rank);
  }

  /** Removes the item with the lowest rank, and returns it. The heap must not be empty. */
  pop(): number {
    const first = this.#items[0] as number;
    const item = this.#items.pop() as number;
    const rank = this.#ranks.pop() as number;
    const { size } = this;
    if (size === 0) return first;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      const right = child + 1;
      if (right < size && this.#isBefore(right, this.#items[child] as number, this.#ranks[child] as number)) child = right;
      if (!this.#isBefore(child, item, rank)) break;
      this.#put(at, this.#items[child] as number, this.#ranks[child] as number);
      at = child;
    }
    this.#put(at, item, rank);
    return first;
  }

  #put(at: number, item: number, rank: number): void {
    this.#items[at] = item;
    this.#ranks[at] = rank;
  }

  /** Whether what stands at a place comes before an item. */
  #isBefore(at: number, item: number, rank: number): boolean {
    const own = this.#ranks[at] as number;
    return own < rank || (own === rank && (this.#items[at] as number) < item);
  }
}
