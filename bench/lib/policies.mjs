import { fixedWindow, gcra, leakyBucket, slidingWindowCounter, slidingWindowLog, tokenBucket } from "@floodgate/core";

/** The policies that are measured, by name. Buckets and queues have a pace of their own if it is given. */
export function policiesOf({ limit, window, capacity = limit, refill = limit, every = window }) {
  return {
    slidingWindowCounter: slidingWindowCounter({ limit, window }),
    "slidingWindowCounter, 6 buckets": slidingWindowCounter({ limit, window, buckets: 6 }),
    fixedWindow: fixedWindow({ limit, window }),
    slidingWindowLog: slidingWindowLog({ limit, window }),
    tokenBucket: tokenBucket({ capacity, refill, every }),
    "tokenBucket, interval": tokenBucket({ capacity, refill, every, style: "interval" }),
    leakyBucket: leakyBucket({ capacity, leak: refill, every }),
    gcra: gcra({ limit: refill, window: every, burst: capacity }),
  };
}
