import {
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  parseDuration,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { formatDuration } from "@floodgate/core/rules";
import fc from "fast-check";
import { expect, it, test } from "vitest";
import { localTime, policyText, waitText } from "../src/output/format.js";

const msOf = (text: string): number => text.split(" ").reduce((sum, part) => sum + parseDuration(part), 0);
const times = fc.integer({ min: 1, max: 2 ** 50 });

test("a duration is exact, and a wait is never rounded down", () => {
  fc.assert(
    fc.property(times, (ms) => {
      expect(msOf(formatDuration(ms))).toBe(ms);
      const shown = msOf(waitText(ms));
      expect(shown - ms).toBeGreaterThanOrEqual(0);
      expect(shown - ms).toBeLessThan(ms < 10_000 ? 1 : 1000);
    }),
  );
});

test("a time is local and names its time zone", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), (ms) => {
      const at = new Date(ms);
      const two = (number: number): string => String(number).padStart(2, "0");
      const date = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
      const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
      expect(localTime(ms)).toMatch(new RegExp(`^${date} ${time} \\S`));
    }),
  );
});

it.each<[Policy, string]>([
  [fixedWindow({ limit: 1, window: "1s" }), "1 per 1s, fixed-window"],
  [slidingWindowLog({ limit: 5, window: "90s" }), "5 per 1m 30s, sliding-window-log"],
  [slidingWindowLog({ limit: 5, window: "1m", countRejected: true }), "5 per 1m including rejected requests, sliding-window-log"],
  [slidingWindowCounter({ limit: 100, window: "1m" }), "100 per 1m, sliding-window-counter"],
  [slidingWindowCounter({ limit: 100, window: "1m", buckets: 6 }), "100 per 1m in 6 parts, sliding-window-counter"],
  [tokenBucket({ capacity: 20, refill: 10, every: "1s" }), "10 every 1s and 20 at once, token-bucket"],
  [tokenBucket({ capacity: 20, refill: 10, every: "1s", style: "interval" }), "10 every 1s in steps and 20 at once, token-bucket"],
  [leakyBucket({ capacity: 10, leak: 5, every: "1s" }), "5 every 1s from a queue of 10, leaky-bucket"],
  [
    leakyBucket({ capacity: 10, leak: 5, every: "1s", maxDelayMs: 1500 }),
    "5 every 1s from a queue of 10, waiting at most 1s 500ms, leaky-bucket",
  ],
  [gcra({ limit: 100, window: "1m" }), "100 per 1m, gcra"],
  [gcra({ limit: 100, window: "1m", burst: 20 }), "100 per 1m and 20 at once, gcra"],
])("a policy is shown as text: %o", (policy, text) => {
  expect(policyText(policy)).toBe(text);
});
