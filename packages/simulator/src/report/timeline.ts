import type { Timeline } from "./contract.js";

/** Lengths of intervals in milliseconds. Each divides the next one, so that two intervals become one without error. */
const steps = [1_000, 5_000, 15_000, 60_000, 300_000, 900_000, 3_600_000, 10_800_000, 21_600_000, 86_400_000, 604_800_000];

const maxIntervals = 360;

/** Counts over time in a bounded number of intervals: they become longer when there would be too many. Times never go back. */
export class TimelineCounter {
  #stepMs = steps[0] as number;
  /** The number of the first interval since the epoch. */
  #first = 0;
  #counts: number[] = [];

  add(nowMs: number): void {
    let at = Math.floor(nowMs / this.#stepMs);
    if (this.#counts.length === 0) this.#first = at;
    while (at - this.#first >= maxIntervals) {
      this.#widen();
      at = Math.floor(nowMs / this.#stepMs);
    }
    const index = at - this.#first;
    while (this.#counts.length <= index) this.#counts.push(0);
    (this.#counts[index] as number)++;
  }

  /** Undefined if nothing was counted. */
  get timeline(): Timeline | undefined {
    if (this.#counts.length === 0) return undefined;
    return { startMs: this.#first * this.#stepMs, stepMs: this.#stepMs, requests: this.#counts };
  }

  #widen(): void {
    const known = steps.indexOf(this.#stepMs);
    const next = steps[known + 1];
    const factor = known >= 0 && next !== undefined ? next / this.#stepMs : 2;
    const first = Math.floor(this.#first / factor);
    const counts: number[] = [];
    this.#counts.forEach((count, i) => {
      const at = Math.floor((this.#first + i) / factor) - first;
      while (counts.length <= at) counts.push(0);
      (counts[at] as number) += count;
    });
    this.#stepMs *= factor;
    this.#first = first;
    this.#counts = counts;
  }
}
