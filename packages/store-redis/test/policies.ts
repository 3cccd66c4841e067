import {
  calendarWindow,
  concurrency,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { heldPolicy } from "@floodgate/core/store";
import * as fc from "fast-check";
import { policies as everyAlgorithm } from "../../conformance/src/store/algorithms.js";

const amount = fc.integer({ min: 1, max: 12 });
const time = fc.constantFrom("60ms" as const, "1200ms" as const, "1m" as const);

/** Policies of every kind, small enough that tests reach their limits. */
export const policies: fc.Arbitrary<Policy> = fc.oneof(
  fc.record({ limit: amount, window: time }).map(fixedWindow),
  fc.record({ limit: amount, window: time, buckets: fc.constantFrom(1, 3, 6) }).map(slidingWindowCounter),
  fc.record({ limit: amount, window: time, buckets: fc.constantFrom(3, 6), strict: fc.constant(true) }).map(slidingWindowCounter),
  fc.record({ limit: amount, window: time, countRejected: fc.boolean() }).map(slidingWindowLog),
  fc
    .record({ capacity: amount, refill: amount, every: time, style: fc.constantFrom("smooth" as const, "interval" as const) })
    .map(tokenBucket),
  fc.record({ limit: amount, window: time, burst: amount }).map(gcra),
  fc.record({ capacity: amount, leak: amount, every: time, maxDelayMs: fc.constantFrom(0, 40, 1_000_000) }).map(leakyBucket),
  everyAlgorithm,
);

/** One policy of each kind that admits a burst of exactly ten units, and nothing more for an hour. */
export const tenAnHour: readonly Policy[] = [
  fixedWindow({ limit: 10, window: "365d" }),
  calendarWindow({ limit: 10, per: "year", timeZone: "America/New_York" }),
  slidingWindowCounter({ limit: 10, window: "365d" }),
  slidingWindowLog({ limit: 10, window: "365d" }),
  tokenBucket({ capacity: 10, refill: 1, every: "365d" }),
  tokenBucket({ capacity: 10, refill: 1, every: "365d", style: "interval" }),
  gcra({ limit: 1, window: "365d", burst: 10 }),
  leakyBucket({ capacity: 10, leak: 1, every: "1d" }),
  concurrency({ limit: 10, hold: "365d" }),
];

/** One policy per storage layout. */
export const everyState: readonly Policy[] = [
  ...tenAnHour,
  slidingWindowCounter({ limit: 10, window: "360d", buckets: 6 }),
  slidingWindowLog({ limit: 10, window: "360d", countRejected: true }),
  ...[fixedWindow, slidingWindowCounter, slidingWindowLog].map((windows) =>
    heldPolicy("test", windows({ limit: 10, window: "365d" }), 86_400_000),
  ),
];
