import {
  type Duration,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { optionsOf } from "../../../compare/policy-text.js";

/** A policy of each algorithm for the same limit in the same window, as alike as they can be. By the names of their lanes. */
export function policiesFor(limit: number, windowMs: number): Readonly<Record<string, Policy>> {
  const window: Duration = `${BigInt(windowMs)}ms`;
  const fifth: Duration = `${BigInt(windowMs / 5)}ms`;
  const part = Math.max(1, Math.ceil(limit / 5));
  return {
    "fixed-window": fixedWindow({ limit, window }),
    "sliding-window-log": slidingWindowLog({ limit, window }),
    "sliding-window-counter": slidingWindowCounter({ limit, window }),
    "sliding-window-counter-strict": slidingWindowCounter({ limit, window, buckets: 5, strict: true }),
    "token-bucket": tokenBucket({ capacity: limit, refill: limit, every: window }),
    "token-bucket-interval": tokenBucket({ capacity: limit, refill: part, every: fifth, style: "interval" }),
    gcra: gcra({ limit, window, burst: part }),
    "leaky-bucket": leakyBucket({ capacity: limit, leak: limit, every: window }),
  };
}

/** A policy as the command line reads it, without its algorithm: `limit=10 window=10s`. */
export function policyText(policy: Policy): string {
  return Object.entries(optionsOf(policy))
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}
