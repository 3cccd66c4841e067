import { type Duration, parseDuration } from "../support/duration.js";
import { checkOptions, quotaNumber, wholeNumber } from "../support/options.js";
import type { PolicyBase } from "./algorithm.js";
import { rateOf } from "./rate.js";
import type { SmoothBucketParts } from "./smooth-bucket.js";

/** The generic cell rate algorithm: an even pace with room for a burst. */
export interface GcraPolicy extends PolicyBase, SmoothBucketParts {
  readonly algorithm: "gcra";
  readonly limit: number;
  readonly windowMs: number;
  readonly burst: number;
}

/** Policies whose burst was left to the limit, and is another where a plan has another limit. */
const withoutBurst = new WeakSet<GcraPolicy>();

/** The burst as it was given. */
export function burstOption(policy: GcraPolicy): number | undefined {
  return withoutBurst.has(policy) ? undefined : policy.burst;
}

/**
 * `limit` units a `window` at an even pace, and up to `burst` (default: `limit`) at once. It decides exactly as a smooth
 * token bucket of capacity `burst` does. Source: ITU-T I.371, ATM Forum TM 4.0.
 */
export function gcra(options: { limit: number; window: Duration; burst?: number }): GcraPolicy {
  checkOptions("gcra", options, ["limit", "window", "burst"], 'gcra({ limit: 100, window: "1m", burst: 20 })');
  const limit = quotaNumber("gcra", "limit", options.limit);
  const windowMs = parseDuration(options.window, "window");
  const burst = options.burst === undefined ? limit : wholeNumber("gcra", "burst", options.burst, 1, 20);
  const quota = limit === 0 ? 0 : burst;
  const policy: GcraPolicy = Object.freeze({
    algorithm: "gcra",
    limit,
    windowMs,
    burst,
    quota,
    stateKind: `gcra ${windowMs}`,
    ...rateOf("gcra", quota, limit, windowMs),
  });
  if (options.burst === undefined) withoutBurst.add(policy);
  return policy;
}
