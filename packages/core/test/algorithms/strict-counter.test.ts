import { describe, expect, it } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { createLimiter, slidingWindowCounter } from "../../src/index.js";
import type { SlidingWindowCounterPolicy } from "../../src/store.js";

/** A limiter whose clock the test turns. */
function limiterOf(policy: SlidingWindowCounterPolicy): (atMs: number) => boolean {
  let nowMs = 0;
  const limiter = createLimiter({ name: "api", policy, store: simpleStore(() => nowMs) });
  return (atMs) => {
    nowMs = atMs;
    return limiter.consume("key").allowed;
  };
}

/** A minute that begins a day after the epoch. */
const startMs = 24 * 60 * 60_000;

/** How many of 100 requests pass at each of these times. */
function passed(policy: SlidingWindowCounterPolicy, ...timesMs: number[]): number[] {
  const consume = limiterOf(policy);
  return timesMs.map((atMs) => Array.from({ length: 100 }, () => consume(startMs + atMs)).filter(Boolean).length);
}

describe("a client that sends a burst at the end of a window, and one at the end of the next", () => {
  it("gets about twice the limit within a minute from two counters, and from seven", () => {
    expect(passed(slidingWindowCounter({ limit: 100, window: "1m" }), 59_999, 119_900)).toEqual([100, 100]);
    expect(passed(slidingWindowCounter({ limit: 100, window: "1m", buckets: 6 }), 59_999, 119_900)).toEqual([100, 99]);
  });

  it("gets the limit from a strict counter", () => {
    const strict = slidingWindowCounter({ limit: 100, window: "1m", buckets: 6, strict: true });
    expect(passed(strict, 59_999, 119_900, 119_999, 120_000)).toEqual([100, 0, 0, 100]);
  });
});

describe("a steady client", () => {
  it.each([2, 6, 60])("gets buckets / (buckets + 1) of the limit from a strict counter: %i buckets", (buckets) => {
    const consume = limiterOf(slidingWindowCounter({ limit: 600, window: "1m", buckets, strict: true }));
    const windows = 20;
    let count = 0;
    // Two requests each 100 ms: twice the limit.
    for (let atMs = 0; atMs < windows * 60_000; atMs += 100) for (let i = 0; i < 2; i++) if (consume(startMs + atMs)) count++;
    expect(count / windows / 600).toBeCloseTo(buckets / (buckets + 1), 1);
  });
});
