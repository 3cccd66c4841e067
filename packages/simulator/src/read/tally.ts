import type { Skip } from "../formats/log-format.js";

export class Tally {
  /** `requests`, and all kinds of skipped ones. */
  lines = 0;
  requests = 0;
  readonly skipped: Record<Skip, number> = { blank: 0, malformed: 0, "no-time": 0, "too-long": 0, "no-request": 0 };
  /** Requests whose time was before that of a request that had been replayed: they count at the later time. */
  late = 0;
  /** By how much the latest one was late, in milliseconds. */
  latestMs = 0;
  firstMs: number = Number.POSITIVE_INFINITY;
  lastMs: number = Number.NEGATIVE_INFINITY;
  readonly formats: Map<string, string> = new Map();
  /** What was wrong with a log as a whole, in words. */
  readonly problems: string[] = [];

  skip(why: Skip, count = 1): void {
    this.lines += count;
    this.skipped[why] += count;
  }
}
