import { durationText } from "../support/duration.js";
import { fixedWindow } from "./fixed-window.js";
import { gcra } from "./gcra.js";
import { leakyBucket } from "./leaky-bucket.js";
import type { Policy } from "./policy.js";
import { slidingWindowCounter } from "./sliding-window-counter.js";
import { slidingWindowLog } from "./sliding-window-log.js";
import { tokenBucket } from "./token-bucket.js";

/**
 * The part of a policy that each of so many processes may use on its own. Counts are rounded down, so that all of them together
 * never pass the whole, but none below one unit, so that no process is shut; an even pace is slowed exactly.
 * @throws FloodgateError where a time, multiplied by the processes, is more than a duration can be.
 */
export function shareOf(policy: Policy, processes: number): Policy {
  const part = (units: number): number => Math.max(1, Math.floor(units / processes));
  switch (policy.algorithm) {
    case "fixed-window":
      return fixedWindow({ limit: part(policy.limit), window: durationText(policy.windowMs) });
    case "sliding-window-log":
      return slidingWindowLog({ limit: part(policy.limit), window: durationText(policy.windowMs), countRejected: policy.countRejected });
    case "sliding-window-counter":
      return slidingWindowCounter({ limit: part(policy.limit), window: durationText(policy.windowMs), buckets: policy.buckets });
    case "gcra":
      return gcra({ limit: policy.limit, window: durationText(policy.windowMs * processes), burst: part(policy.burst) });
    case "token-bucket": {
      const capacity = part(policy.capacity);
      if (policy.style === "smooth")
        return tokenBucket({ capacity, refill: policy.refill, every: durationText(policy.everyMs * processes) });
      // Tokens come at one moment, so fewer each time; where there is less than one for each process, more seldom.
      const every = durationText(policy.everyMs * Math.ceil(processes / policy.refill));
      return tokenBucket({ capacity, refill: part(policy.refill), every, style: "interval" });
    }
    case "leaky-bucket": {
      const { leak, maxDelayMs } = policy;
      const queue = { capacity: part(policy.capacity), leak, every: durationText(policy.everyMs * processes) };
      return leakyBucket(maxDelayMs === Number.POSITIVE_INFINITY ? queue : { ...queue, maxDelayMs });
    }
  }
}
