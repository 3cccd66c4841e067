import { doubled } from "../support/min-heap.js";

/** A sum that is kept for each client: the units in windows of one length, all of them or only those with a mark. */
export interface WindowSum {
  readonly windowMs: number;
  /** A bit of the marks: 1, 2, 4, … Undefined for all units. */
  readonly mark?: number;
}

/** Windows of one length: the sums that they have, and where they begin in the ring. */
interface Windows {
  readonly lengthMs: number;
  readonly sums: readonly number[];
  start: number;
}

/**
 * What each client did in windows that slide: exactly, for any instant. A window of a minute at 12:01:00 begins after 12:00:00. All instants
 * of the longest window stand in one ring, in the order of time, so that each of them leaves each window once. Memory follows the instants
 * in the longest window.
 */
export class WindowSums {
  /** The mark of each sum; 0 for all units. */
  readonly #marks: readonly number[];
  /** The longest windows first. */
  readonly #windows: readonly Windows[];
  #sums: Float64Array;
  /** For each client, the position of its newest instant. Positions count on forever; the ring's size is a power of two. */
  #newest: Float64Array = new Float64Array(64);
  #ring: Ring = new Ring(1024);
  #end = 0;
  #nowMs = Number.NEGATIVE_INFINITY;

  constructor(sums: readonly WindowSum[]) {
    this.#marks = sums.map(({ mark = 0 }) => mark);
    this.#sums = new Float64Array(64 * sums.length);
    const lengths = [...new Set(sums.map(({ windowMs }) => windowMs))].sort((a, b) => b - a);
    this.#windows = lengths.map((lengthMs) => ({
      lengthMs,
      sums: sums.flatMap(({ windowMs }, i) => (windowMs === lengthMs ? [i] : [])),
      start: 0,
    }));
  }

  /** Adds units of a client, with marks. Times never go back. */
  add(client: number, nowMs: number, units: number, marks = 0): void {
    if (nowMs !== this.#nowMs) this.#advance(nowMs);
    const own = this.#marks;
    while ((client + 1) * own.length > this.#sums.length) this.#sums = doubled(this.#sums);
    while (client >= this.#newest.length) this.#newest = doubled(this.#newest);
    this.#note(client, nowMs, units, marks);
    const sums = this.#sums;
    const row = client * own.length;
    for (let i = 0; i < own.length; i++) {
      if (own[i] === 0 || ((own[i] as number) & marks) !== 0) sums[row + i] = (sums[row + i] as number) + units;
    }
  }

  /** A sum of a client, in the window that ends with what was added last. */
  sum(client: number, index: number): number {
    return this.#sums[client * this.#marks.length + index] as number;
  }

  /** Writes an instant into the ring. Units of one client, instant and marks share an entry. */
  #note(client: number, nowMs: number, units: number, marks: number): void {
    const { start } = this.#windows[0] as Windows;
    const newest = this.#newest[client] as number;
    if (newest >= start && newest < this.#end && this.#ring.addTo(newest, client, nowMs, units, marks)) return;
    if (this.#end - start === this.#ring.size) this.#ring = this.#ring.doubled(start, this.#end);
    this.#ring.write(this.#end, client, nowMs, units, marks);
    this.#newest[client] = this.#end++;
  }

  /** Drops instants from the windows that they have left. */
  #advance(nowMs: number): void {
    this.#nowMs = nowMs;
    const { times, clients, units, marked, size } = this.#ring;
    const own = this.#marks;
    for (const windows of this.#windows) {
      const untilMs = nowMs - windows.lengthMs;
      for (; windows.start < this.#end; windows.start++) {
        const at = windows.start & (size - 1);
        if ((times[at] as number) > untilMs) break;
        const row = (clients[at] as number) * own.length;
        for (const i of windows.sums) {
          if (own[i] === 0 || ((own[i] as number) & (marked[at] as number)) !== 0)
            this.#sums[row + i] = (this.#sums[row + i] as number) - (units[at] as number);
        }
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
  readonly marked: Int32Array;

  constructor(size: number) {
    this.size = size;
    this.times = new Float64Array(size);
    this.units = new Float64Array(size);
    this.clients = new Int32Array(size);
    this.marked = new Int32Array(size);
  }

  write(position: number, client: number, timeMs: number, units: number, marks: number): void {
    const at = position & (this.size - 1);
    this.times[at] = timeMs;
    this.units[at] = units;
    this.clients[at] = client;
    this.marked[at] = marks;
  }

  addTo(position: number, client: number, timeMs: number, units: number, marks: number): boolean {
    const at = position & (this.size - 1);
    if (this.clients[at] !== client || this.times[at] !== timeMs || this.marked[at] !== marks) return false;
    this.units[at] = (this.units[at] as number) + units;
    return true;
  }

  doubled(start: number, end: number): Ring {
    const larger = new Ring(2 * this.size);
    for (let i = start; i < end; i++) {
      const at = i & (this.size - 1);
      larger.write(i, this.clients[at] as number, this.times[at] as number, this.units[at] as number, this.marked[at] as number);
    }
    return larger;
  }
}
