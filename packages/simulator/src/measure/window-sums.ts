import { Numbers } from "./numbers.js";

/**
 * How many units each client has in a window that slides: exactly, for any instant. A window of a minute at 12:01:00 begins after 12:00:00.
 * Memory follows the instants in the window.
 */
export class WindowSums {
  readonly #lengthMs: number;
  readonly #sums = new Numbers();
  /** Instants in the order of time: each is a time, a client and its units. Those from `#start` to `#end` are in the window. */
  #instants: Float64Array = new Float64Array(3072);
  #start = 0;
  #end = 0;
  /** How many numbers there were before those in the array. */
  #removed = 0;
  /** For each client, the position of its newest instant among all that ever were. */
  readonly #newest = new Numbers();

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
