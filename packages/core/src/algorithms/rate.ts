import { checkExact } from "./algorithm.js";

/**
 * A rate of `amount` units every `everyMs`, in whole numbers: a unit has `unit` parts, and `flow` parts pass each millisecond. Both are
 * divided by `divisor`, to keep products small.
 */
export interface Rate {
  readonly unit: number;
  readonly flow: number;
  readonly divisor: number;
  /** `quota` units in parts. */
  readonly full: number;
  /** The time that `quota` units take, rounded up. */
  readonly spanMs: number;
}

/** Numbers up to this many parts are not divided: then plans with the same `every` have the same parts, and no fraction is lost. */
const undivided = 2 ** 46;

export function rateOf(where: string, quota: number, amount: number, everyMs: number): Rate {
  // A limit of 0 is decided before the arithmetic, so its rate may be 0.
  if (quota === 0) return { unit: 1, flow: 1, divisor: 1, full: 0, spanMs: 0 };
  const divisor = quota * everyMs <= undivided ? 1 : greatestCommonDivisor(amount, everyMs);
  const unit = everyMs / divisor;
  const flow = amount / divisor;
  const full = quota * unit;
  checkExact(where, full + flow, "Lower the capacity, or use numbers with a larger common divisor (60 every minute rather than 59).");
  return { unit, flow, divisor, full, spanMs: Math.ceil(full / flow) };
}

/** The time until a bucket with a debt of this many units is full. */
export function recoveryMs({ full, unit, flow }: Rate, units: number): number {
  return Math.ceil((full + units * unit) / flow);
}

/** The divisor of `amount` and `everyMs`. If no divisor keeps a shared state exact, its parts are whole units. */
export function divisorOf(quota: number, amount: number, everyMs: number): number {
  if (quota * everyMs <= undivided) return 1;
  const divisor = greatestCommonDivisor(amount, everyMs);
  return quota * (everyMs / divisor) <= 2 ** 52 ? divisor : everyMs;
}

/** The time that parts with a large divisor take, rounded up to whole `everyMs` if a millisecond is not a whole number of parts. */
export function takesMs(parts: number, amount: number, everyMs: number, divisor: number): number {
  return amount % divisor === 0 ? Math.ceil(parts / (amount / divisor)) : Math.ceil(parts / amount) * everyMs;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/**
 * Converts parts from `from` parts per unit to `to` parts per unit, rounded down. If the exact product would exceed 2^53, the fraction of a
 * unit is dropped.
 */
export function rescale(parts: number, from: number, to: number): number {
  if (from === to) return parts;
  const whole = Math.floor(parts / from);
  const product = (parts - whole * from) * to;
  return whole * to + (product <= Number.MAX_SAFE_INTEGER ? Math.floor(product / from) : 0);
}
