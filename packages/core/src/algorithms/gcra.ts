import { type Duration, durationOption, durationText } from "../support/duration.js";
import { checkOptions, quotaNumber, wholeNumber } from "../support/options.js";
import { type AlgorithmDefinition, type PolicyBase, register } from "./algorithm.js";
import { type Rate, rateOf, smoothBucket } from "./smooth-bucket.js";

/** The generic cell rate algorithm: an even pace with room for a burst. */
export interface GcraPolicy extends PolicyBase, Rate {
  readonly algorithm: "gcra";
  readonly limit: number;
  readonly windowMs: number;
  readonly burst: number;
}

/** Policies without the option `burst`. A plan with another limit has another burst. */
const withoutBurst = new WeakSet<GcraPolicy>();

export interface GcraOptions {
  /** The most units in a window in the long run; 0 rejects every request. */
  limit: number;
  /** How long a window is: `"1m"`. */
  window: Duration;
  /** The most units at once. Default: the limit. */
  burst?: number;
}

/**
 * `limit` units per `window` at a constant rate, and up to `burst` (default: `limit`) at once. It decides exactly like a smooth token
 * bucket of capacity `burst`. Source: ITU-T I.371, ATM Forum TM 4.0.
 *
 *     gcra({ limit: 100, window: "1m", burst: 20 })
 */
export function gcra(options: GcraOptions): GcraPolicy {
  checkOptions("gcra", options, ["limit", "window", "burst"], 'gcra({ limit: 100, window: "1m", burst: 20 })');
  const limit = quotaNumber("gcra", "limit", options.limit);
  const windowMs = durationOption("gcra", "window", options.window);
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

export const gcraDefinition: AlgorithmDefinition<GcraPolicy, GcraOptions> = register("gcra", {
  numbers: ["limit", "window", "burst"],
  make: gcra,
  optionsOf(policy) {
    const { limit, windowMs, burst } = policy;
    return { limit, window: durationText(windowMs), burst: withoutBurst.has(policy) ? undefined : burst };
  },
  share: ({ windowMs, burst }, part, processes) => ({ window: durationText(windowMs * processes), burst: part(burst) }),
  algorithms: [smoothBucket],
});
