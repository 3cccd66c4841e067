import { checkExact } from "./algorithm.js";

/**
 * `amount` units every `everyMs`, as whole numbers: a unit is `unit` parts, and `flow` parts pass each millisecond.
 * Both are divided by their greatest common divisor, which keeps the products small.
 */
export interface Rate {
  readonly unit: number;
  readonly flow: number;
  /** `quota` units in parts. */
  readonly full: number;
  /** The time that `quota` units take, rounded up. */
  readonly spanMs: number;
}

export function rateOf(where: string, quota: number, amount: number, everyMs: number): Rate {
  // Of nothing every rate is the same; a division by 0 would be none.
  if (quota === 0) return { unit: 1, flow: 1, full: 0, spanMs: 0 };
  const divisor = greatestCommonDivisor(amount, everyMs);
  const unit = everyMs / divisor;
  const flow = amount / divisor;
  const full = quota * unit;
  checkExact(where, full + flow, "Lower the capacity, or use numbers with a larger common divisor (60 every minute rather than 59).");
  return { unit, flow, full, spanMs: Math.ceil(full / flow) };
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/**
 * Parts counted in units of `from` parts, in units of `to`: exact, or without the fraction of a unit where the
 * exact product would pass 2^53.
 */
export function rescale(parts: number, from: number, to: number): number {
  if (from === to) return parts;
  const whole = Math.floor(parts / from);
  const product = (parts - whole * from) * to;
  return whole * to + (product <= Number.MAX_SAFE_INTEGER ? Math.floor(product / from) : 0);
}
