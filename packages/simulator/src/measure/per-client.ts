/** Numbers keys 0, 1, 2, … in the order in which they come, up to a bound. */
export class KeyIndex {
  readonly #numbers = new Map<string, number>();
  readonly #keys: string[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#keys.length;
  }

  /** The number of a key; -1 if there are too many keys before it. */
  of(key: string): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    if (this.size >= this.#max) return -1;
    this.#numbers.set(key, this.size);
    return this.#keys.push(key) - 1;
  }

  /** The key of a number; undefined if no key has it. */
  keyOf(number: number): string | undefined {
    return this.#keys[number];
  }
}

/** A number for each client, which is 0 until it is set. In a flat array that grows, because there may be millions of clients. */
export class PerClient {
  #values: Float64Array = new Float64Array(64);

  get(client: number): number {
    return this.#values[client] ?? 0;
  }

  set(client: number, value: number): void {
    while (client >= this.#values.length) this.#values = doubled(this.#values);
    this.#values[client] = value;
  }

  add(client: number, more: number): void {
    this.set(client, this.get(client) + more);
  }

  raise(client: number, least: number): void {
    if (least > this.get(client)) this.set(client, least);
  }

  /** The numbers of the first `count` clients. */
  first(count: number): Float64Array {
    return Float64Array.from({ length: count }, (_, client) => this.get(client));
  }
}

/** A copy with room for twice as many numbers, and for `least`. */
export function doubled(values: Float64Array, least = 0): Float64Array {
  const larger = new Float64Array(Math.max(least, 2 * values.length));
  larger.set(values);
  return larger;
}

/**
 * How many units each client has in a window that slides: exactly, for any instant. A window of a minute at 12:01:00 begins after 12:00:00.
 * Memory follows the instants in the window.
 */
export class WindowSums {
  readonly #lengthMs: number;
  readonly #sums = new PerClient();
  /** Instants in the order of time: each is a time, a client and its units. Those from `#start` to `#end` are in the window. */
  #instants: Float64Array = new Float64Array(3072);
  #start = 0;
  #end = 0;
  /** How many numbers there were before those in the array. */
  #removed = 0;
  /** For each client, the position of its newest instant among all that ever were. */
  readonly #newest = new PerClient();

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  /** Adds units of a client. Times never go back. Returns the sum of the client in the window that ends now. */
  add(client: number, nowMs: number, units: number): number {
    for (; this.#start < this.#end && (this.#instants[this.#start] as number) <= nowMs - this.#lengthMs; this.#start += 3) {
      this.#sums.add(this.#instants[this.#start + 1] as number, -(this.#instants[this.#start + 2] as number));
    }
    const newest = Math.max(this.#start, this.#newest.get(client) - this.#removed);
    const isKnown = newest < this.#end && this.#instants[newest] === nowMs && this.#instants[newest + 1] === client;
    if (isKnown) (this.#instants[newest + 2] as number) += units;
    else {
      if (this.#end === this.#instants.length) this.#makeRoom();
      this.#newest.set(client, this.#removed + this.#end);
      this.#instants[this.#end++] = nowMs;
      this.#instants[this.#end++] = client;
      this.#instants[this.#end++] = units;
    }
    this.#sums.add(client, units);
    return this.#sums.get(client);
  }

  /** Moves the window to the front, in an array of twice the size if it fills more than a half. */
  #makeRoom(): void {
    const kept = this.#instants.subarray(this.#start, this.#end);
    if (2 * kept.length > this.#instants.length) this.#instants = new Float64Array(2 * this.#instants.length);
    this.#instants.set(kept);
    this.#removed += this.#start;
    this.#start = 0;
    this.#end = kept.length;
  }
}
