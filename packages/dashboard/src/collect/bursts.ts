import type { Burst, Range } from "../contract.js";
import { firstStep, ranges } from "./ring.js";

const minutes = ranges.day.points;

/** The busiest second of each minute of the last day. */
export class Bursts {
  readonly #minutes: Burst[] = [];

  /** Notes a second that has ended. Of equally busy seconds, the first one stays. */
  add(second: number, count: number, limited: number): void {
    if (count === 0) return;
    const minuteMs = Math.floor(second / 60) * 60_000;
    const at = Math.floor(second / 60) % minutes;
    const known = this.#minutes[at]?.minuteMs === minuteMs ? this.#minutes[at] : undefined;
    const inMinute = count + (known?.inMinute ?? 0);
    const isBusiest = known === undefined || count > known.count;
    this.#minutes[at] = isBusiest ? { minuteMs, secondMs: second * 1000, count, atMost: count, limited, inMinute } : { ...known, inMinute };
  }

  read(range: Range, nowMs: number): Burst[] {
    const firstMs = Math.floor((firstStep(range, nowMs) * ranges[range].stepMs) / 60_000) * 60_000;
    const kept = this.#minutes.filter(({ minuteMs }) => minuteMs >= firstMs && minuteMs < nowMs);
    return kept.sort((a, b) => a.minuteMs - b.minuteMs);
  }
}
