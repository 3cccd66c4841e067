import * as assert from "node:assert/strict";
import {
  type Decision,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import * as fc from "fast-check";
import { agreesWithModel } from "./bounds.js";
import { scripts } from "./scripts.js";
import type { Suite } from "./world.js";

/** Policies whose products come near to what a double holds exactly. */
export function largeCases(suite: Suite): void {
  suite.describe("is exact to the last unit and millisecond", () => {
    for (const [name, policy] of largePolicies) {
      suite.it(`for ${name}`, async (world) => {
        await fc.assert(
          fc.asyncProperty(scripts(policy, { refunds: true, settles: true, longest: 15 }), (steps) =>
            agreesWithModel(world, policy, steps),
          ),
          { numRuns: 30 },
        );
      });
    }
  });
}

export const largePolicies: readonly (readonly [string, Policy])[] = [
  ["ten million a day", gcra({ limit: 10_000_000, window: "1d" })],
  ["ten million a day in a fixed window", fixedWindow({ limit: 10_000_000, window: "1d" })],
  ["a million a minute", tokenBucket({ capacity: 1_000_000, refill: 1_000_000, every: "1m" })],
  ["a million a minute by interval", tokenBucket({ capacity: 1_000_000, refill: 999_983, every: "1m", style: "interval" })],
  ["ten thousand a second through a queue", leakyBucket({ capacity: 10_000, leak: 10_000, every: "1s" })],
  ["a million an hour through the sliding counter", slidingWindowCounter({ limit: 1_000_000, window: "1h" })],
  ["one a year", gcra({ limit: 1, window: "365d" })],
  ["a log of one a year", slidingWindowLog({ limit: 1, window: "365d" })],
  ["a fixed window of a year", fixedWindow({ limit: 5, window: "365d" })],
  ["a sliding counter of a year", slidingWindowCounter({ limit: 1000, window: "365d", buckets: 5 })],
  ["seven a year by interval", tokenBucket({ capacity: 10, refill: 7, every: "365d", style: "interval" })],
  ["a queue of a day's requests", leakyBucket({ capacity: 24, leak: 1, every: "1h" })],
];

/** Whole numbers, not negative, and no more remaining than there is. */
export function checkNumbers(decision: Decision): void {
  const { limit, remaining, retryAfterMs, resetAfterMs, delayMs, cost, atMs } = decision;
  for (const [name, value] of Object.entries({ limit, remaining, resetAfterMs, delayMs, atMs })) {
    assert.ok(Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0), `${name} is ${value}`);
  }
  if (cost > limit) assert.equal(retryAfterMs, Number.POSITIVE_INFINITY);
  else assert.ok(Number.isSafeInteger(retryAfterMs) && retryAfterMs >= 0, `retryAfterMs is ${retryAfterMs}`);
  assert.ok(remaining <= limit, `${remaining} of ${limit} remain`);
}
