import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { memoryStore } from "../../../store-memory/src/index.js";
import type { Policy } from "../../src/index.js";
import * as core from "../../src/index.js";

// A store that depends on another version of core than the adapter: npm then installs both.

let other: typeof core;
beforeEach(async () => {
  vi.resetModules();
  other = await import("../../src/index.js");
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("a limiter on a store of another copy of core", () => {
  const policies: [string, (of: typeof core) => Policy][] = [
    ["fixed-window", ({ fixedWindow }) => fixedWindow({ limit: 5, window: "1h" })],
    ["calendar-window", ({ calendarWindow }) => calendarWindow({ limit: 5, per: "day" })],
    ["sliding-window-log", ({ slidingWindowLog }) => slidingWindowLog({ limit: 5, window: "1h" })],
    ["sliding-window-counter", ({ slidingWindowCounter }) => slidingWindowCounter({ limit: 5, window: "1h" })],
    ["token-bucket", ({ tokenBucket }) => tokenBucket({ capacity: 5, refill: 1, every: "1h" })],
    ["gcra", ({ gcra }) => gcra({ limit: 5, window: "1h" })],
    ["concurrency", ({ concurrency }) => concurrency({ limit: 5, hold: "1h" })],
  ];

  it.each(policies)("gives back what a decision took, alone and among several: %s", (_, policy) => {
    const limiter = other.createLimiter({ name: "a", policy: policy(core), store: memoryStore() });
    const decision = limiter.consume("key", { cost: 2 });
    expect(limiter.refund("key", decision)).toBe(2);
    const { all } = other.consumeAll([{ limiter, key: "key", cost: 3 }]);
    expect(limiter.settle("key", all[0] as typeof decision, 0)).toBe(-3);
    expect(limiter.peek("key").remaining).toBe(5);
  });

  it("takes no copy of a decision", () => {
    const limiter = other.createLimiter({ name: "a", policy: core.fixedWindow({ limit: 5, window: "1h" }), store: memoryStore() });
    const decision = limiter.consume("key");
    expect(() => limiter.refund("key", { ...decision })).toThrow("not an original decision");
  });
});
