import type { Range } from "../contract.js";

export const ranges: Readonly<Record<Range, { readonly stepMs: number; readonly points: number }>> = {
  minute: { stepMs: 1000, points: 60 },
  hour: { stepMs: 10_000, points: 360 },
  day: { stepMs: 60_000, points: 1440 },
};

/** Steps that are kept before each range, for readers in other processes, which read late. */
export const mostExtra = 6;

export const rangeNames = Object.keys(ranges) as Range[];

/** The first step of the range whose newest step has ended at `nowMs`. */
export function firstStep(range: Range, nowMs: number): number {
  const { stepMs, points } = ranges[range];
  return Math.floor(nowMs / stepMs) - points;
}
