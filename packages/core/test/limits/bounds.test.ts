import fc from "fast-check";
import { expect, test } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import {
  concurrency,
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";
import { RateLimit } from "../../src/middleware/rate-limit.js";
import { reader } from "../reader.js";

const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 100, window: "1d" }), store: simpleStore() });
const ofMiddleware = (options: object) =>
  new RateLimit("rateLimit", { limit: 100, window: "1d", ...options } as never, [], reader, () => simpleStore());

/** All that takes a number of units. */
const takers: Record<string, (value: number) => unknown> = {
  "the cost of consume": (cost) => limiter.consume("k", { cost }),
  "the cost of consumeAll": (cost) => consumeAll([{ limiter, key: "k", cost }]),
  "the cost of settle": (cost) => limiter.settle("k", limiter.consume("k"), cost),
  "the cost of charge": (cost) => limiter.charge("k", cost),
  "the cost of a rule": (cost) => ofMiddleware({ cost }),
  "the limit of a middleware": (limit) => ofMiddleware({ limit }),
  "the `after` of a ban": (after) => ofMiddleware({ ban: { after, within: "1m", for: "1h" } }),
  "the limit of a window": (limit) => fixedWindow({ limit, window: "1d" }),
  "the limit of a log": (limit) => slidingWindowLog({ limit, window: "1d" }),
  "the limit of a counter": (limit) => slidingWindowCounter({ limit, window: "1d" }),
  "the burst of a rate": (burst) => gcra({ limit: 100, window: "1d", burst }),
  "the capacity of a bucket": (capacity) => tokenBucket({ capacity, refill: 1, every: "1s" }),
  "the leak of a queue": (leak) => leakyBucket({ capacity: 10, leak, every: "1s" }),
  "the limit of slots": (limit) => concurrency({ limit, hold: "1m" }),
};

const messageOf = (call: () => unknown): string => {
  try {
    call();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
};

test.each(Object.entries(takers))("%s says its upper bound to who passes it, and only to them", (_, take) => {
  const tooLarge = fc.oneof(fc.double({ min: 2 ** 53, noNaN: true }), fc.constantFrom(2 ** 53, 2 ** 53 + 2, Number.POSITIVE_INFINITY));
  fc.assert(
    fc.property(tooLarge, (value) => {
      expect(messageOf(() => take(value))).toMatch(/ must be a whole number of at least \d and below 2\^53\b.*, but was /);
    }),
    { numRuns: 50 },
  );
  fc.assert(
    fc.property(fc.constantFrom(-1, -0.5, 0.5, 1.5, Number.NaN, Number.NEGATIVE_INFINITY, -(2 ** 53)), (value) => {
      expect(messageOf(() => take(value))).toMatch(/ must be a whole number of at least \d(?!.*2\^53).*, but was /);
    }),
  );
});

test("a hold says its upper bound to who passes it", () => {
  const tooLong = fc.integer({ min: Math.ceil(2 ** 50 / 1000), max: 2 ** 52 / 1024 }).map((seconds) => 1000 * seconds);
  fc.assert(
    fc.property(tooLong, (hold) => {
      expect(messageOf(() => concurrency({ limit: 1, hold }))).toMatch(/ must be a duration of at most \d+d, but was /);
    }),
    { numRuns: 50 },
  );
});
