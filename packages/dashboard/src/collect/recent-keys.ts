import { mergeSummaries, Sketch, type Summary } from "./sketch.js";

/** How long one sketch counts, and how many are kept: the last 50 to 60 minutes. */
const partMs = 10 * 60_000;
const parts = 6;

/** Counters of each sketch. A key with more than 1/256 of the requests is certain to be found. */
export const counters = 256;

/** The heaviest keys of about the last hour: one sketch for each ten minutes, merged when read. */
export class RecentKeys {
  #parts: { readonly part: number; readonly sketch: Sketch }[];

  constructor(nowMs: number) {
    this.#parts = [{ part: Math.floor(nowMs / partMs), sketch: new Sketch(counters) }];
  }

  add(rule: string, key: string): void {
    (this.#parts[this.#parts.length - 1] as { sketch: Sketch }).sketch.add(rule, key);
  }

  /** Begins a new sketch when ten minutes have passed, and drops old ones. */
  moveTo(nowMs: number): void {
    const part = Math.floor(nowMs / partMs);
    if (this.#parts[this.#parts.length - 1]?.part === part) return;
    this.#parts.push({ part, sketch: new Sketch(counters) });
    this.#parts = this.#parts.filter((kept) => kept.part > part - parts && kept.part <= part);
  }

  /** When the oldest sketch began, unless `sinceMs` is later. */
  since(sinceMs: number): number {
    return Math.max(sinceMs, (this.#parts[0]?.part ?? 0) * partMs);
  }

  summary(): Summary {
    return mergeSummaries(
      this.#parts.map(({ sketch }) => sketch.summary()),
      counters,
    );
  }
}
