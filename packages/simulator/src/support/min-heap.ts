/** Numbered items by rank, the lowest first; items of one rank by number. In flat arrays, so that a push allocates nothing. */
export class MinHeap {
  #ranks: Float64Array = new Float64Array(64);
  #items: Float64Array = new Float64Array(64);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The lowest rank; Infinity if the heap is empty. */
  get lowest(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#ranks[0] as number);
  }

  push(item: number, rank: number): void {
    if (this.#size === this.#ranks.length) {
      this.#ranks = doubled(this.#ranks);
      this.#items = doubled(this.#items);
    }
    const ranks = this.#ranks;
    const items = this.#items;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = ranks[parent] as number;
      if (above < rank || (above === rank && (items[parent] as number) < item)) break;
      ranks[at] = above;
      items[at] = items[parent] as number;
      at = parent;
    }
    ranks[at] = rank;
    items[at] = item;
  }

  /** Removes the item with the lowest rank, and returns it. The heap must not be empty. */
  pop(): number {
    const ranks = this.#ranks;
    const items = this.#items;
    const first = items[0] as number;
    const size = --this.#size;
    const rank = ranks[size] as number;
    const item = items[size] as number;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      const right = child + 1;
      if (right < size && comesBefore(ranks, items, right, ranks[child] as number, items[child] as number)) child = right;
      if (!comesBefore(ranks, items, child, rank, item)) break;
      ranks[at] = ranks[child] as number;
      items[at] = items[child] as number;
      at = child;
    }
    ranks[at] = rank;
    items[at] = item;
    return first;
  }
}

function comesBefore(ranks: Float64Array, items: Float64Array, at: number, rank: number, item: number): boolean {
  const own = ranks[at] as number;
  return own < rank || (own === rank && (items[at] as number) < item);
}

/** A copy with room for twice as many numbers, and for `least`. */
export function doubled(values: Float64Array, least = 0): Float64Array {
  const larger = new Float64Array(Math.max(least, 2 * values.length));
  larger.set(values);
  return larger;
}
