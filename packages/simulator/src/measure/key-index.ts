/** Numbers keys 0, 1, 2, … in the order in which they come, up to a bound. */
export class KeyIndex {
  readonly #numbers = new Map<string, number>();
  readonly #keys: string[] = [];
  readonly #max: number;
  #lastKey: string | undefined;
  #last = -1;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#keys.length;
  }

  /** The number of a key; -1 if there are too many keys before it. */
  of(key: string): number {
    if (key === this.#lastKey) return this.#last;
    let number = this.#numbers.get(key);
    if (number === undefined) {
      if (this.size >= this.#max) return -1;
      number = this.#keys.push(key) - 1;
      this.#numbers.set(key, number);
    }
    this.#lastKey = key;
    this.#last = number;
    return number;
  }

  /** The key of a number; undefined if no key has it. */
  keyOf(number: number): string | undefined {
    return this.#keys[number];
  }
}
