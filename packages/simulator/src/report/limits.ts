import { leastValue } from "../suggest/quantile.js";

/** Shares of clients whose limits are always in a grid. */
const touched = [0.0001, 0.001, 0.01, 0.05];

/**
 * The limits of a grid: the rule's own, those that touch certain shares of the clients, and about `count` others, which grow by the same
 * factor from a limit that touches most clients to one that touches none.
 * @param descending what the clients need, the greatest first; at least one.
 * @param valid the lowest limit that is valid, beside the rule's own.
 */
export function gridLimits(descending: Float64Array, own: number, count: number, valid: number): number[] {
  const most = Math.max(valid, descending[0] as number);
  const least = Math.min(most, Math.max(valid, Math.min(own, descending[Math.floor(0.75 * (descending.length - 1))] as number)));
  const limits = new Set([own, least, most]);
  for (const share of touched) limits.add(Math.max(least, leastValue(descending, share).value));
  const factor = (most / least) ** (1 / Math.max(1, count - 1));
  for (let i = 1; i < count - 1; i++) {
    const limit = rounded(least * factor ** i);
    if (limit > least && limit < most) limits.add(limit);
  }
  return [...limits].sort((a, b) => a - b);
}

/** A number that people would choose: two digits that count. */
function rounded(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.round(value / unit) * unit;
}
