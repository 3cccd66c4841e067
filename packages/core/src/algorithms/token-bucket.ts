import { type Duration, parseDuration } from "../support/duration.js";
import { checkOptions, oneOf, quotaNumber, wholeNumber } from "../support/options.js";
import { checkExact, type PolicyBase } from "./algorithm.js";
import { rateOf } from "./rate.js";
import type { SmoothBucketParts } from "./smooth-bucket.js";

/** Tokens that come in at a steady rate, up to the capacity; a request takes as many as it costs. */
export interface TokenBucketPolicy extends PolicyBase, SmoothBucketParts {
  readonly algorithm: "token-bucket";
  readonly capacity: number;
  readonly refill: number;
  readonly everyMs: number;
  readonly style: "smooth" | "interval";
}

/**
 * Bursts of up to `capacity` units, and `refill` units every `every` in the long run. `"smooth"` (the default) lets the
 * level rise continuously; `"interval"` adds `refill` tokens at each whole `every` after the last refill.
 */
export function tokenBucket(options: {
  capacity: number;
  refill: number;
  every: Duration;
  style?: "smooth" | "interval";
}): TokenBucketPolicy {
  const where = "tokenBucket";
  checkOptions(where, options, ["capacity", "refill", "every", "style"], `${where}({ capacity: 20, refill: 10, every: "1s" })`);
  const capacity = quotaNumber(where, "capacity", options.capacity, 20);
  const refill = wholeNumber(where, "refill", options.refill, 1, 10);
  const everyMs = parseDuration(options.every, "every");
  const style = options.style === undefined ? "smooth" : oneOf(where, "style", options.style, ["smooth", "interval"]);
  const stateKind = `token-bucket ${style} ${everyMs}`;
  const base = { algorithm: "token-bucket", capacity, refill, everyMs, style, quota: capacity, stateKind } as const;
  if (style === "smooth") return Object.freeze({ ...base, ...rateOf(where, capacity, refill, everyMs) });
  const spanMs = Math.ceil(capacity / refill) * everyMs;
  checkExact(where, Math.max(capacity + refill, spanMs), "Lower the capacity or the refill, or shorten `every`.");
  return Object.freeze({ ...base, unit: 1, flow: refill, divisor: 1, full: capacity, spanMs });
}
