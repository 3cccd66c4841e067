/** Numbers keys 0, 1, 2, … in the order in which they come, up to a bound. */
export class KeyIndex {
  readonly #numbers = new Map<string, number>();
  readonly #max: number;
  #lastKey: string | undefined;
  #last = -1;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#numbers.size;
  }

  /** The number of a key; -1 if there are too many keys before it. */
  of(key: string): number {
    if (key === this.#lastKey) return this.#last;
    let number = this.#numbers.get(key);
    if (number === undefined) {
      if (this.#numbers.size >= this.#max) return -1;
      number = this.#numbers.size;
      this.#numbers.set(key, number);
    }
    this.#lastKey = key;
    this.#last = number;
    return number;
  }

  /** The keys of these numbers. */
  keysOf(numbers: Iterable<number>): Map<number, string> {
    const wanted = new Set(numbers);
    const found = new Map<number, string>();
    let number = 0;
    for (const key of this.#numbers.keys()) {
      if (wanted.has(number)) found.set(number, key);
      number++;
    }
    return found;
  }
}
