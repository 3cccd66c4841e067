import { checkExact } from "./algorithm.js";

/**
 * `amount` units every `everyMs`, as whole numbers: a unit is `unit` parts, and `flow` parts pass each millisecond.
 * Both were divided by `divisor`, which keeps the products small.
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

/** Up to here, in parts, a bucket's numbers stay as they are: plans with the same `every` then have the same parts, and lose no fraction. */
const undivided = 2 ** 46;

export function rateOf(where: string, quota: number, amount: number, everyMs: number): Rate {
  // A limit of 0 never reaches the arithmetic, and its rate may be 0.
  if (quota === 0) return { unit: 1, flow: 1, divisor: 1, full: 0, spanMs: 0 };
  const divisor = quota * everyMs <= undivided ? 1 : greatestCommonDivisor(amount, everyMs);
  const unit = everyMs / divisor;
  const flow = amount / divisor;
  const full = quota * unit;
  checkExact(where, full + flow, "Lower the capacity, or use numbers with a larger common divisor (60 every minute rather than 59).");
  return { unit, flow, divisor, full, spanMs: Math.ceil(full / flow) };
}

/** The time in which a bucket is full again that lacks so many units more than it holds. */
export function recoveryMs({ full, unit, flow }: Rate, units: number): number {
  return Math.ceil((full + units * unit) / flow);
}

/** What divides `amount` and `everyMs`. A shared state may have numbers that no divisor keeps exact: then its parts are whole units. */
export function divisorOf(quota: number, amount: number, everyMs: number): number {
  if (quota * everyMs <= undivided) return 1;
  const divisor = greatestCommonDivisor(amount, everyMs);
  return quota * (everyMs / divisor) <= 2 ** 52 ? divisor : everyMs;
}

/** The time that parts of so large a divisor take, rounded up: to whole `everyMs` where a part has no whole number a millisecond. */
export function takesMs(parts: number, amount: number, everyMs: number, divisor: number): number {
  return amount % divisor === 0 ? Math.ceil(parts / (amount / divisor)) : Math.ceil(parts / amount) * everyMs;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/**
 * Parts counted in units of `from` parts, in units of `to`, rounded down: exact, or without the fraction of a unit where the
 * exact product would pass 2^53.
 */
export function rescale(parts: number, from: number, to: number): number {
  if (from === to) return parts;
  const whole = Math.floor(parts / from);
  const product = (parts - whole * from) * to;
  return whole * to + (product <= Number.MAX_SAFE_INTEGER ? Math.floor(product / from) : 0);
}
