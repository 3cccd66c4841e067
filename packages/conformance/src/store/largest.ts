import {
  type Duration,
  fixedWindow,
  gcra,
  type LeakyBucketPolicy,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";

/** Combines plans of one kind: the largest of each number. */
export function largestOf(plans: readonly Policy[]): Policy {
  return plans.reduce(larger);
}

function larger(a: Policy, b: Policy): Policy {
  if (b.stateKind !== a.stateKind) throw new TypeError(`${a.stateKind} and ${b.stateKind} count apart`);
  const most = Math.max(a.quota, b.quota);
  const amount = Math.max(amountOf(a), amountOf(b));
  switch (a.algorithm) {
    case "fixed-window":
      return fixedWindow({ limit: most, window: timeOf(a.windowMs) });
    case "sliding-window-log": {
      const countRejected = a.countRejected && (b as typeof a).countRejected;
      return slidingWindowLog({ limit: most, window: timeOf(a.windowMs), countRejected });
    }
    case "sliding-window-counter":
      return slidingWindowCounter({ limit: most, window: timeOf(a.windowMs), buckets: a.buckets });
    case "gcra":
      return gcra({ burst: most, limit: amount, window: timeOf(a.windowMs) });
    case "token-bucket":
      return tokenBucket({ capacity: most, refill: amount, every: timeOf(a.everyMs), style: a.style });
    case "leaky-bucket": {
      const maxDelayMs = Math.max(a.maxDelayMs, (b as LeakyBucketPolicy).maxDelayMs);
      const longest = Number.isFinite(maxDelayMs) ? { maxDelayMs } : {};
      return leakyBucket({ capacity: most, leak: amount, every: timeOf(a.everyMs), ...longest });
    }
  }
}

/** The units that a bucket regains (or drains) each `every`, and a window regains each window. */
export function amountOf(policy: Policy): number {
  switch (policy.algorithm) {
    case "gcra":
      return policy.limit;
    case "token-bucket":
      return policy.refill;
    case "leaky-bucket":
      return policy.leak;
    default:
      return policy.limit;
  }
}

function timeOf(ms: number): Duration {
  return `${ms}ms` as Duration;
}
