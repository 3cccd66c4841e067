import type { Range } from "../contract.js";

/** Counts per step of time, for the newest steps. Steps that nobody counted in are 0. */
export class Ring {
  readonly #counts: Uint32Array;
  /** The newest step that was counted in. */
  #newest = Number.NEGATIVE_INFINITY;

  constructor(steps: number) {
    this.#counts = new Uint32Array(steps);
  }

  /** Adds to a step. Steps that are too old are ignored. */
  add(step: number, count: number): void {
    const size = this.#counts.length;
    if (step > this.#newest) {
      // Clears the steps in between, which hold counts of an earlier round.
      const first = Math.max(this.#newest + 1, step - size + 1);
      for (let at = first; at <= step; at++) this.#counts[at % size] = 0;
      this.#newest = step;
    } else if (step <= this.#newest - size) return;
    const index = step % size;
    this.#counts[index] = (this.#counts[index] as number) + count;
  }

  at(step: number): number {
    const size = this.#counts.length;
    return step > this.#newest || step <= this.#newest - size ? 0 : (this.#counts[step % size] as number);
  }

  /** The counts of some steps, or undefined if all are 0. */
  read(first: number, steps: number): number[] | undefined {
    if (this.#newest < first) return undefined;
    const counts = Array.from({ length: steps }, (_, i) => this.at(first + i));
    return counts.some((count) => count > 0) ? counts : undefined;
  }
}

export const ranges: Readonly<Record<Range, { readonly stepMs: number; readonly points: number }>> = {
  minute: { stepMs: 1000, points: 60 },
  hour: { stepMs: 10_000, points: 360 },
  day: { stepMs: 60_000, points: 1440 },
};

/** Steps that are kept before each range, for readers in other processes, which read late. */
export const maxExtra = 6;

export const rangeNames = Object.keys(ranges) as Range[];

/** The first step of the range whose newest step has ended at `nowMs`. */
export function firstStep(range: Range, nowMs: number): number {
  const { stepMs, points } = ranges[range];
  return Math.floor(nowMs / stepMs) - points;
}
