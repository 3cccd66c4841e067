import { doubled } from "../support/min-heap.js";

/**
 * What each client did in windows that slide: exactly, for any instant. A window of a minute at 12:01:00 begins after 12:00:00. Memory
 * follows the instants in the longest window, not the units: a log has at most 3600 of them in an hour if its times are whole seconds.
 */
export class SlidingSums {
  readonly #windowsMs: readonly number[];
  readonly #longestMs: number;
  readonly #width: number;
  /** For each client: the newest instant, its units, and the sum in each window. */
  #rows: Float64Array;
  /** Earlier instants in the longest window. */
  readonly #earlier: (Instants | undefined)[] = [];

  constructor(windowsMs: readonly number[]) {
    this.#windowsMs = windowsMs;
    this.#longestMs = Math.max(...windowsMs);
    this.#width = SUMS + windowsMs.length;
    this.#rows = new Float64Array(64 * this.#width);
  }

  /** Adds units of a client. Times never go back. */
  add(client: number, nowMs: number, units: number): void {
    const row = client * this.#width;
    while (row + this.#width > this.#rows.length) this.#rows = doubled(this.#rows);
    const rows = this.#rows;
    if (rows[row + NEWEST] !== nowMs) this.#moveTo(client, row, nowMs);
    rows[row + UNITS] = (rows[row + UNITS] as number) + units;
    for (let i = row + SUMS; i < row + this.#width; i++) rows[i] = (rows[i] as number) + units;
  }

  /** The units of a client in a window that ends with what was added last. */
  sum(client: number, window: number): number {
    return this.#rows[client * this.#width + SUMS + window] as number;
  }

  #moveTo(client: number, row: number, nowMs: number): void {
    const rows = this.#rows;
    const newestMs = rows[row + NEWEST] as number;
    const units = rows[row + UNITS] as number;
    rows[row + NEWEST] = nowMs;
    rows[row + UNITS] = 0;
    if (nowMs - newestMs >= this.#longestMs) {
      this.#earlier[client] = undefined;
      rows.fill(0, row + SUMS, row + this.#width);
      return;
    }
    let earlier = this.#earlier[client];
    if (earlier === undefined) this.#earlier[client] = earlier = new Instants(this.#windowsMs.length);
    if (units > 0) earlier.push(newestMs, units);
    for (let i = 0; i < this.#windowsMs.length; i++) {
      const gone = earlier.drop(i, nowMs - (this.#windowsMs[i] as number));
      rows[row + SUMS + i] = (rows[row + SUMS + i] as number) - gone;
    }
  }
}

const NEWEST = 0;
const UNITS = 1;
const SUMS = 2;

/** Instants with their units, in a ring; each window has its own start in it. */
class Instants {
  #times: Float64Array = new Float64Array(8);
  #units: Float64Array = new Float64Array(8);
  /** Positions count on forever; the ring's size is a power of two. */
  #end = 0;
  readonly #starts: number[];

  constructor(windows: number) {
    this.#starts = new Array<number>(windows).fill(0);
  }

  push(timeMs: number, units: number): void {
    const size = this.#times.length;
    const start = Math.min(...this.#starts);
    if (this.#end - start === size) this.#grow(start);
    const at = this.#end++ & (this.#times.length - 1);
    this.#times[at] = timeMs;
    this.#units[at] = units;
  }

  /** Drops instants up to `untilMs` from a window, and returns their units. */
  drop(window: number, untilMs: number): number {
    const mask = this.#times.length - 1;
    let start = this.#starts[window] as number;
    let units = 0;
    while (start < this.#end && (this.#times[start & mask] as number) <= untilMs) units += this.#units[start++ & mask] as number;
    this.#starts[window] = start;
    return units;
  }

  #grow(start: number): void {
    const size = this.#times.length;
    const times = new Float64Array(2 * size);
    const units = new Float64Array(2 * size);
    for (let i = start; i < this.#end; i++) {
      times[i & (2 * size - 1)] = this.#times[i & (size - 1)] as number;
      units[i & (2 * size - 1)] = this.#units[i & (size - 1)] as number;
    }
    this.#times = times;
    this.#units = units;
  }
}
