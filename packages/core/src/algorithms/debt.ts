/** How deep a debt may go, in units of a log and parts of a bucket: with an instant or a quota added it stays below 2^53. */
export const deepest: number = 2 ** 52;

/** The units that a count stands for. Those above the limit are cut, for the limit was higher; a count below 0 is a debt, which is not. */
export function counted(count: number, limit: number): number {
  return count < 0 ? -count : Math.min(count, limit);
}

/** So many units as a count: more than the limit are a debt. */
export function countOf(units: number, limit: number): number {
  return units > limit ? -units : units;
}

/**
 * What a bucket gets back of a charge that cost less than was reserved, in parts: so much more of what was reserved than of the
 * real cost still counts, now that `flowed` parts have come in. Of a charge from when the bucket was larger, what it holds now.
 */
export function given(reserved: number, cost: number, quota: number, unit: number, flowed: number): number {
  const cut = Math.max(reserved - quota, 0);
  const counts = (units: number): number => Math.max(Math.max(units - cut, 0) * unit - flowed, 0);
  return counts(reserved) - counts(cost);
}
