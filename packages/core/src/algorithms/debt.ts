/** The largest debt, in units of a log or parts of a bucket. With an instant or a quota added it stays below 2^53. */
export const maxDebt: number = 2 ** 52;

/** Ten years. A bucket pays off its largest debt in this time, or in its span if that is longer. */
export const maxDebtMs = 315_360_000_000;

/** The most parts that a bucket of `quota` units, of `parts` each, may lack if `amount` units arrive every `everyMs`. */
export function maxMissing(quota: number, amount: number, everyMs: number, parts = 1): number {
  return Math.min((quota + Math.max(quota, Math.floor(maxDebtMs / everyMs) * amount)) * parts, maxDebt);
}

/** The change of a settlement, clamped to 2^52 units either way. So the result stays exact when a client of Redis sends it. */
export function changeOf(reserved: number, cost: number): number {
  return Math.max(-maxDebt, Math.min(cost - reserved, maxDebt));
}

/** The change of a settlement in a window, whose charges may be larger. Some clients of Redis misread numbers closer to 2^53. */
export function windowChangeOf(reserved: number, cost: number): number {
  return Math.max(63 - Number.MAX_SAFE_INTEGER, Math.min(cost - reserved, Number.MAX_SAFE_INTEGER - 63));
}

/**
 * The parts that a bucket gets back if a charge cost less than was reserved: the unexpired reservation minus the unexpired real cost, after
 * `flowed` parts have arrived. If the bucket was larger when it was charged, only the part that it can hold now counts.
 */
export function refundedParts(reserved: number, cost: number, quota: number, unit: number, flowed: number): number {
  const cut = Math.max(reserved - quota, 0);
  const counts = (units: number): number => Math.max(Math.max(units - cut, 0) * unit - flowed, 0);
  return counts(reserved) - counts(cost);
}
