import type { Burst, Range } from "../contract.js";
import { firstStep, ranges } from "./ranges.js";

const minutes = ranges.day.points;

/** The busiest second of each minute of the last day. */
export class Bursts {
  /** Which minute each entry is of. */
  readonly #minute = new Float64Array(minutes).fill(-1);
  readonly #second = new Uint8Array(minutes);
  readonly #count = new Uint32Array(minutes);
  readonly #limited = new Uint32Array(minutes);
  readonly #inMinute = new Uint32Array(minutes);

  /** Notes a second that has ended. Of equally busy seconds, the first one stays. */
  add(second: number, count: number, limited: number): void {
    if (count === 0) return;
    const minute = Math.floor(second / 60);
    const at = minute % minutes;
    if (this.#minute[at] !== minute) {
      this.#minute[at] = minute;
      this.#count[at] = 0;
      this.#inMinute[at] = 0;
    }
    this.#inMinute[at] = (this.#inMinute[at] as number) + count;
    if (count <= (this.#count[at] as number)) return;
    this.#count[at] = count;
    this.#limited[at] = limited;
    this.#second[at] = second % 60;
  }

  read(range: Range, nowMs: number): Burst[] {
    const first = Math.floor((firstStep(range, nowMs) * ranges[range].stepMs) / 60_000);
    const bursts: Burst[] = [];
    for (let minute = Math.max(first, 0); minute * 60_000 < nowMs; minute++) {
      const at = minute % minutes;
      if (this.#minute[at] !== minute) continue;
      const count = this.#count[at] as number;
      bursts.push({
        minuteMs: minute * 60_000,
        secondMs: (minute * 60 + (this.#second[at] as number)) * 1000,
        count,
        atMost: count,
        limited: this.#limited[at] as number,
        inMinute: this.#inMinute[at] as number,
      });
    }
    return bursts;
  }
}
