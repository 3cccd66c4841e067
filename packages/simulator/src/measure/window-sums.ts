import { doubled } from "../support/min-heap.js";

/** Windows of one length, and where they begin in the ring. */
interface Windows {
  readonly lengthMs: number;
  /** Which of the sums of a client it is. */
  readonly sum: number;
  start: number;
}

/**
 * How many units each client has in windows that slide: exactly, for any instant. A window of a minute at 12:01:00 begins after 12:00:00. All
 * instants of the longest window stand in one ring, in the order of time, so that each of them leaves each window once. Memory follows the
 * instants in the longest window.
 */
export class WindowSums {
  /** The longest windows first. */
  readonly #windows: readonly Windows[];
  #sums: Float64Array;
  /** For each client, the position of its newest instant. Positions count on forever; the ring's size is a power of two. */
  #newest: Float64Array = new Float64Array(64);
  #ring: Ring = new Ring(1024);
  #end = 0;
  #nowMs = Number.NEGATIVE_INFINITY;

  constructor(lengthsMs: readonly number[]) {
    this.#sums = new Float64Array(64 * lengthsMs.length);
    this.#windows = lengthsMs.map((lengthMs, sum) => ({ lengthMs, sum, start: 0 })).sort((a, b) => b.lengthMs - a.lengthMs);
  }

  /** Adds units of a client. Times never go back. */
  add(client: number, nowMs: number, units: number): void {
    if (nowMs !== this.#nowMs) this.#advance(nowMs);
    const width = this.#windows.length;
    while ((client + 1) * width > this.#sums.length) this.#sums = doubled(this.#sums);
    while (client >= this.#newest.length) this.#newest = doubled(this.#newest);
    this.#note(client, nowMs, units);
    for (let i = client * width; i < (client + 1) * width; i++) this.#sums[i] = (this.#sums[i] as number) + units;
  }

  /** The sum of a client in the windows of a length, by its place in the constructor: in the window that ends with what was added last. */
  sum(client: number, length: number): number {
    return this.#sums[client * this.#windows.length + length] as number;
  }

  /** Writes an instant into the ring. Units of one client and instant share an entry. */
  #note(client: number, nowMs: number, units: number): void {
    const { start } = this.#windows[0] as Windows;
    const newest = this.#newest[client] as number;
    if (newest >= start && newest < this.#end && this.#ring.addTo(newest, client, nowMs, units)) return;
    if (this.#end - start === this.#ring.size) this.#ring = this.#ring.doubled(start, this.#end);
    this.#ring.write(this.#end, client, nowMs, units);
    this.#newest[client] = this.#end++;
  }

  /** Drops instants from the windows that they have left. */
  #advance(nowMs: number): void {
    this.#nowMs = nowMs;
    const { times, clients, units, size } = this.#ring;
    for (const windows of this.#windows) {
      for (; windows.start < this.#end; windows.start++) {
        const at = windows.start & (size - 1);
        if ((times[at] as number) > nowMs - windows.lengthMs) break;
        const i = (clients[at] as number) * this.#windows.length + windows.sum;
        this.#sums[i] = (this.#sums[i] as number) - (units[at] as number);
      }
    }
  }
}

/** Instants of clients in flat arrays. */
class Ring {
  readonly size: number;
  readonly times: Float64Array;
  readonly units: Float64Array;
  readonly clients: Int32Array;

  constructor(size: number) {
    this.size = size;
    this.times = new Float64Array(size);
    this.units = new Float64Array(size);
    this.clients = new Int32Array(size);
  }

  write(position: number, client: number, timeMs: number, units: number): void {
    const at = position & (this.size - 1);
    this.times[at] = timeMs;
    this.units[at] = units;
    this.clients[at] = client;
  }

  addTo(position: number, client: number, timeMs: number, units: number): boolean {
    const at = position & (this.size - 1);
    if (this.clients[at] !== client || this.times[at] !== timeMs) return false;
    this.units[at] = (this.units[at] as number) + units;
    return true;
  }

  doubled(start: number, end: number): Ring {
    const larger = new Ring(2 * this.size);
    for (let i = start; i < end; i++) {
      const at = i & (this.size - 1);
      larger.write(i, this.clients[at] as number, this.times[at] as number, this.units[at] as number);
    }
    return larger;
  }
}
