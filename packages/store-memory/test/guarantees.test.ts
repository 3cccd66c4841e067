import {
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { expect, test } from "vitest";
import { memoryStore } from "../src/index.js";

/** When a client sends requests, and how many at once. */
type Burst = readonly [atMs: number, requests: number];

/** The most requests that pass within any `stretchMs`, the first millisecond included, the last not. */
function mostIn(policy: Policy, stretchMs: number, bursts: readonly Burst[]): number {
  let nowMs = 0;
  const store = memoryStore({ clock: () => nowMs });
  const limiter = createLimiter({ name: "guarantee", policy, store });
  const passed: number[] = [];
  for (const [atMs, requests] of bursts) {
    nowMs = atMs;
    for (let i = 0; i < requests; i++) {
      const decision = limiter.consume("k");
      if (decision.allowed) passed.push(atMs + decision.delayMs);
    }
  }
  return Math.max(...passed.map((from) => passed.filter((at) => at >= from && at < from + stretchMs).length));
}

const minute = { limit: 100, window: "1m" } as const;
/** Bursts at all these moments. */
const at = (...moments: number[]): Burst[] => moments.map((atMs) => [atMs, 150]);
const steadily = (everyMs: number): Burst[] => Array.from({ length: 1000 }, (_, i) => [i * everyMs, 25]);

test.each<[string, number, Policy, number, readonly Burst[]]>([
  ["slidingWindowCounter", 200, slidingWindowCounter(minute), 60_000, at(59_999, 119_900)],
  ["slidingWindowCounter with six buckets", 200, slidingWindowCounter({ ...minute, buckets: 6 }), 60_000, at(59_999, 119_998)],
  ["slidingWindowLog", 100, slidingWindowLog(minute), 60_000, at(59_999, 119_998, 119_999, 120_000)],
  ["fixedWindow", 200, fixedWindow(minute), 60_000, at(59_999, 60_000)],
  // From the first moment of a stretch to its last, both included.
  ["tokenBucket", 30, tokenBucket({ capacity: 20, refill: 10, every: "1s" }), 1001, steadily(10)],
  [
    "tokenBucket in intervals",
    30,
    tokenBucket({ capacity: 20, refill: 10, every: "1s", style: "interval" }),
    1001,
    [
      [0, 1],
      [999, 25],
      [1000, 25],
    ],
  ],
  ["gcra", 120, gcra({ ...minute, burst: 20 }), 60_001, steadily(100)],
  ["leakyBucket", 6, leakyBucket({ capacity: 10, leak: 5, every: "1s" }), 1001, steadily(10)],
])("%s lets at most %d requests pass in its worst stretch of time, as the README says", (_, most, policy, stretchMs, bursts) => {
  expect(mostIn(policy, stretchMs, bursts)).toBe(most);
});

test("a sliding window counter with six buckets lets nothing more pass until five sixths of the window are over", () => {
  const policy = slidingWindowCounter({ ...minute, buckets: 6 });
  expect(mostIn(policy, 50_000, at(59_999, ...Array.from({ length: 50 }, (_, i) => 60_999 + i * 1000)))).toBe(100);
});
