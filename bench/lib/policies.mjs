/**
 * The policies that are measured, by name. Buckets and queues have a pace of their own if it is given.
 * @param core the package that makes them: some parts measure it as users install it.
 */
export function policiesOf(core, { limit, window, capacity = limit, refill = limit, every = window }) {
  return {
    slidingWindowCounter: core.slidingWindowCounter({ limit, window }),
    "slidingWindowCounter, 6 buckets": core.slidingWindowCounter({ limit, window, buckets: 6 }),
    fixedWindow: core.fixedWindow({ limit, window }),
    slidingWindowLog: core.slidingWindowLog({ limit, window }),
    tokenBucket: core.tokenBucket({ capacity, refill, every }),
    "tokenBucket, interval": core.tokenBucket({ capacity, refill, every, style: "interval" }),
    leakyBucket: core.leakyBucket({ capacity, leak: refill, every }),
    gcra: core.gcra({ limit: refill, window: every, burst: capacity }),
  };
}
