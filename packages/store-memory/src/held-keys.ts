/** How much a key has used of its limit (0 to 1), and when that is forgotten. */
export interface Use {
  readonly share: number;
  readonly resetAtMs: number;
}

/**
 * Keys that have used much of their limit, ordered by how much (of those at their limit: by their reset), in a binary heap
 * of numbers. The order is as of the last `hold` or `update`: a decision does not touch it.
 */
export class HeldKeys {
  readonly #ids = new Map<string, number>();
  readonly #keys: (string | undefined)[] = [];
  readonly #handles: number[] = [];
  readonly #shares: number[] = [];
  readonly #resets: number[] = [];
  /** The heap of ids, and where in it an id stands. */
  readonly #heap: number[] = [];
  readonly #places: number[] = [];
  readonly #free: number[] = [];
  #hand = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** The handle of a key, or undefined. */
  get(key: string): number | undefined {
    const id = this.#ids.get(key);
    return id === undefined ? undefined : this.#handles[id];
  }

  hold(key: string, handle: number, use: Use): void {
    const id = this.#free.pop() ?? this.#keys.length;
    this.#ids.set(key, id);
    this.#keys[id] = key;
    this.#handles[id] = handle;
    this.#shares[id] = use.share;
    this.#resets[id] = use.resetAtMs;
    this.#places[id] = this.#heap.length;
    this.#heap.push(id);
    this.#rise(this.#heap.length - 1);
  }

  /** Gives a key another block. */
  move(key: string, handle: number): void {
    this.#handles[this.#ids.get(key) as number] = handle;
  }

  update(key: string, use: Use): void {
    const id = this.#ids.get(key) as number;
    this.#shares[id] = use.share;
    this.#resets[id] = use.resetAtMs;
    this.#rise(this.#places[id] as number);
    this.#sink(this.#places[id] as number);
  }

  delete(key: string): void {
    const id = this.#ids.get(key);
    if (id === undefined) return;
    const place = this.#places[id] as number;
    const last = this.#heap.pop() as number;
    if (last !== id) {
      this.#put(last, place);
      this.#rise(place);
      this.#sink(this.#places[last] as number);
    }
    this.#ids.delete(key);
    this.#keys[id] = undefined;
    this.#free.push(id);
  }

  /** The key that goes first. */
  first(): string {
    return this.#keys[this.#heap[0] as number] as string;
  }

  /** One key after the other, round and round, for a look at whether it is still worth holding. */
  next(): string {
    if (this.#hand >= this.#heap.length) this.#hand = 0;
    return this.#keys[this.#heap[this.#hand++] as number] as string;
  }

  #before(a: number, b: number): boolean {
    const less = (this.#shares[a] as number) - (this.#shares[b] as number);
    return less < 0 || (less === 0 && (this.#resets[a] as number) < (this.#resets[b] as number));
  }

  #put(id: number, place: number): void {
    this.#heap[place] = id;
    this.#places[id] = place;
  }

  #rise(from: number): void {
    const id = this.#heap[from] as number;
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.#heap[above] as number;
      if (!this.#before(id, parent)) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(id, place);
  }

  #sink(from: number): void {
    const id = this.#heap[from] as number;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= this.#heap.length) break;
      if (below + 1 < this.#heap.length && this.#before(this.#heap[below + 1] as number, this.#heap[below] as number)) below++;
      const child = this.#heap[below] as number;
      if (!this.#before(child, id)) break;
      this.#put(child, place);
      place = below;
    }
    this.#put(id, place);
  }
}
