/** A value that at most a share of the clients is above. */
export interface Quantile {
  readonly value: number;
  /** How many clients are above it. */
  readonly above: number;
  /**
   * Where the value lies with 95 % confidence, if the clients are a sample of more that behave alike. `high` is undefined if it may be above
   * all that were seen.
   */
  readonly low: number;
  readonly high: number | undefined;
}

/**
 * The least of these values that at most `share` of them are above, as order statistics say, without assuming any distribution.
 * @param descending the values of all clients, the largest first; at least one.
 */
export function leastValue(descending: Float64Array, share: number): Quantile {
  const count = descending.length;
  // 0.1 % of 3000 is 3, also if floating-point arithmetic says 2.9999999999999996.
  const mayBeAbove = Math.min(count - 1, Math.floor(count * share + 1e-9));
  const value = descending[mayBeAbove] as number;
  const [fewest, most] = likelyCount(count, share);
  return {
    value,
    above: countAbove(descending, value),
    low: descending[Math.min(count - 1, most)] as number,
    high: fewest === 0 ? undefined : descending[fewest - 1],
  };
}

/** How many of the values are above one. */
export function countAbove(descending: Float64Array, value: number): number {
  const at = descending.findIndex((each) => each <= value);
  return at < 0 ? descending.length : at;
}

/** How many of `count` are above a quantile, with 95 % confidence: the binomial distribution. */
function likelyCount(count: number, share: number): [number, number] {
  const mean = count * share;
  if (mean > 500 || share <= 0 || share >= 1) {
    const spread = 1.96 * Math.sqrt(Math.max(0, mean * (1 - share)));
    return [Math.max(0, Math.floor(mean - spread)), Math.min(count, Math.ceil(mean + spread))];
  }
  let probability = Math.exp(count * Math.log1p(-share));
  let sum = probability;
  let fewest = 0;
  let k = 0;
  while (sum < 0.975 && k < count) {
    if (sum <= 0.025) fewest = k + 1;
    probability *= ((count - k) / (k + 1)) * (share / (1 - share));
    k++;
    sum += probability;
  }
  return [fewest, k];
}
