import fc from "fast-check";
import { expect, it } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import {
  calendarWindow,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";

const rate = { limit: 3, window: "1m" } as const;
const policies: readonly Policy[] = [
  fixedWindow(rate),
  slidingWindowLog(rate),
  slidingWindowCounter(rate),
  gcra(rate),
  tokenBucket({ capacity: 3, refill: 3, every: "1m" }),
  tokenBucket({ capacity: 3, refill: 3, every: "1m", style: "interval" }),
  leakyBucket({ capacity: 3, leak: 3, every: "1m" }),
  calendarWindow({ limit: 3, per: "month", timeZone: "Europe/Berlin" }),
  concurrency({ limit: 3, hold: "1m" }),
];

const nanoseconds = 1_790_000_000_000 * 1e6;

it.each([Number.NaN, Number.POSITIVE_INFINITY, 1e16, nanoseconds, -1e300, "5", null, undefined, 5n, new Date(5)])(
  "a clock that returns %s is refused by every policy, and charges nothing",
  (wrong) => {
    for (const policy of policies) {
      let nowMs: unknown = 1_790_000_000_000;
      const limiter = createLimiter({ name: "api", policy, store: memoryStore({ clock: () => nowMs as number }) });
      limiter.consume("key");
      const right = nowMs;
      nowMs = wrong;
      expect(() => limiter.consume("key")).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_CLOCK" }));
      nowMs = right;
      expect(limiter.peek("key").remaining).toBe(2);
    }
  },
);

it("a clock that jumps anywhere within thousands of years gets a decision with valid numbers from every policy", () => {
  const instant = fc.oneof(fc.constantFrom(-0.5, 0, 0.5, 1e12 + 0.9), fc.double({ min: -6e13, max: 2e14, noNaN: true }));
  fc.assert(
    fc.property(fc.constantFrom(...policies), fc.array(instant, { minLength: 1, maxLength: 12 }), (policy, instants) => {
      let nowMs = 0;
      const limiter = createLimiter({ name: "api", policy, store: memoryStore({ clock: () => nowMs }) });
      for (nowMs of instants) {
        const { remaining, retryAfterMs, resetAfterMs, delayMs, atMs } = limiter.consume("key");
        for (const number of [remaining, retryAfterMs, resetAfterMs, delayMs]) expect(number).toBeGreaterThanOrEqual(0);
        expect([remaining, retryAfterMs, resetAfterMs, delayMs, atMs].every(Number.isSafeInteger)).toBe(true);
      }
    }),
  );
});
