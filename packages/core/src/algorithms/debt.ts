/** How deep a debt may go, in units of a log and parts of a bucket: with an instant or a quota added it stays below 2^53. */
export const deepest: number = 2 ** 52;

/** How many units may be missing where `amount` come every `everyMs`: they have all come before 2^52 ms have passed. */
export function mostMissing(amount: number, everyMs: number): number {
  return Math.min(Math.floor(deepest / everyMs) * amount, deepest);
}

/** What a settlement is to change, up to 2^52 units either way: what it answers stays far enough from 2^53 to travel as a number. */
export function changeOf(reserved: number, cost: number): number {
  return Math.max(-deepest, Math.min(cost - reserved, deepest));
}

/** What a settlement is to change in a window, whose charges may be larger: some clients of Redis misread what lies nearer to 2^53. */
export function windowChangeOf(reserved: number, cost: number): number {
  return Math.max(63 - Number.MAX_SAFE_INTEGER, Math.min(cost - reserved, Number.MAX_SAFE_INTEGER - 63));
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
