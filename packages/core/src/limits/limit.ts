import type { Algorithm } from "../algorithms/algorithm.js";
import { fixedWindowAlgorithm } from "../algorithms/fixed-window.js";
import { intervalBucketAlgorithm } from "../algorithms/interval-bucket.js";
import { leakyBucketAlgorithm } from "../algorithms/leaky-bucket.js";
import type { Policy } from "../algorithms/policy.js";
import { slidingWindowCounterAlgorithm } from "../algorithms/sliding-window-counter.js";
import { slidingWindowLogAlgorithm } from "../algorithms/sliding-window-log.js";
import { smoothBucketAlgorithm } from "../algorithms/smooth-bucket.js";
import { FloodgateError, shown } from "../support/errors.js";

/** A named policy, ready to be decided: what a store is handed. Made once, compared by identity. */
export interface Limit<P = Policy> {
  readonly name: string;
  readonly policy: P;
  readonly algorithm: Algorithm<P>;
}

export function createLimit(name: string, policy: Policy): Limit {
  return Object.freeze({ name, policy, algorithm: algorithmOf(policy) });
}

/** The pure functions that decide a policy. */
export function algorithmOf(policy: Policy): Algorithm<Policy> {
  switch (policy.algorithm) {
    case "fixed-window":
      return fixedWindowAlgorithm as Algorithm<Policy>;
    case "sliding-window-log":
      return slidingWindowLogAlgorithm as Algorithm<Policy>;
    case "sliding-window-counter":
      return slidingWindowCounterAlgorithm as Algorithm<Policy>;
    case "leaky-bucket":
      return leakyBucketAlgorithm as Algorithm<Policy>;
    case "gcra":
      return smoothBucketAlgorithm as Algorithm<Policy>;
    case "token-bucket":
      return (policy.style === "interval" ? intervalBucketAlgorithm : smoothBucketAlgorithm) as Algorithm<Policy>;
  }
}

/** Names stand in headers, Redis keys and metrics, so they are printable ASCII. */
export function checkName(where: string, name: unknown): string {
  if (typeof name === "string" && /^[\x20-\x7e]{1,128}$/.test(name)) return name;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`name\` must be 1 to 128 printable ASCII characters (it stands in the response headers), but was ${shown(name)}. Write name: "api".`,
  );
}
