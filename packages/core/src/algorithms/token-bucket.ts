import { type Duration, durationText, formatDuration, parseDuration } from "../support/duration.js";
import { checkOptions, oneOf, quotaNumber, wholeNumber } from "../support/options.js";
import { type AlgorithmDefinition, checkExact, type PolicyBase } from "./algorithm.js";
import { intervalBucket } from "./interval-bucket.js";
import { type Rate, rateOf } from "./rate.js";
import { smoothBucket } from "./smooth-bucket.js";

/** Tokens arrive at a constant rate, up to the capacity. A request takes as many as it costs. */
export interface TokenBucketPolicy extends PolicyBase, Rate {
  readonly algorithm: "token-bucket";
  readonly capacity: number;
  readonly refill: number;
  readonly everyMs: number;
  readonly style: "smooth" | "interval";
}

export interface TokenBucketOptions {
  /** How many tokens the bucket holds, and so the most units at once; 0 rejects every request. */
  capacity: number;
  /** Tokens that come in every `every`. */
  refill: number;
  /** How long one refill takes: `"1s"`. */
  every: Duration;
  /** Whether tokens come in evenly, or all at once at the end of each `every`. Default `"smooth"`. */
  style?: "smooth" | "interval";
}

/**
 * Bursts of up to `capacity` units, and `refill` units per `every` in the long run. `style: "smooth"` (default) refills continuously;
 * `"interval"` adds `refill` tokens at each whole `every` after the last refill.
 *
 *     tokenBucket({ capacity: 20, refill: 10, every: "1s" })
 */
export function tokenBucket(options: TokenBucketOptions): TokenBucketPolicy {
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

export const tokenBucketDefinition: AlgorithmDefinition<TokenBucketPolicy, TokenBucketOptions> = {
  numbers: ["capacity", "refill", "every"],
  make: tokenBucket,
  optionsOf: ({ capacity, refill, everyMs, style }) => ({ capacity, refill, every: durationText(everyMs), style }),
  share({ capacity, refill, everyMs, style }, part, processes) {
    if (style === "smooth") return tokenBucket({ capacity: part(capacity), refill, every: durationText(everyMs * processes) });
    // All tokens arrive at one moment, so each process gets fewer each time. If there is less than one for each, they arrive less often.
    const every = durationText(everyMs * Math.ceil(processes / refill));
    return tokenBucket({ capacity: part(capacity), refill: part(refill), every, style });
  },
  describe: ({ capacity, refill, everyMs, style }) =>
    `${refill} every ${formatDuration(everyMs)}${style === "interval" ? " in steps" : ""} and ${capacity} at once`,
  algorithms: [smoothBucket, intervalBucket],
  algorithmOf: ({ style }) => (style === "interval" ? intervalBucket : smoothBucket),
};
