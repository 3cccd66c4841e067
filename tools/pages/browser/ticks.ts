const day = 86_400;
/** In seconds. In steps of 35 days, no two labels are of one month. */
const roundTimes = [
  ...[0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200],
  ...[day, 2 * day, 7 * day, 14 * day, 35 * day],
];

/** The least round time that leaves its labels room, in milliseconds. */
export function timeStep(spanMs: number, width: number): number {
  const least = (spanMs * 64) / Math.max(1, width) / 1000;
  return 1000 * (roundTimes.find((step) => step >= least) ?? Math.ceil(least / day) * day);
}

/** Round values from 0 to `most`: at most `count` after the 0, at least `least` apart. */
export function linearTicks(most: number, count: number, least = 0): number[] {
  const apart = most / count;
  const unit = 10 ** Math.floor(Math.log10(apart));
  const step = Math.max(least, unit * ([1, 2, 5].find((factor) => factor * unit >= apart) ?? 10));
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}
