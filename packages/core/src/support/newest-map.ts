/**
 * A map of bounded size: it remembers at least the newest `count` keys, and at most twice as many. It is two Maps in turn, because a Map
 * whose oldest key is deleted again and again steps over all earlier deletions each time.
 */
export class NewestMap<V> {
  readonly #count: number;
  #newer = new Map<string, V>();
  #older = new Map<string, V>();

  constructor(count: number) {
    this.#count = count;
  }

  get(key: string): V | undefined {
    return this.#newer.get(key) ?? this.#older.get(key);
  }

  /** Sets a key, which is the newest then. */
  set(key: string, value: V): void {
    if (this.#newer.size >= this.#count && !this.#newer.has(key)) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(key, value);
  }

  delete(key: string): void {
    this.#newer.delete(key);
    this.#older.delete(key);
  }
}
