import { describe, expect, it, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { fixedWindow, gcra, leakyBucket, type Policy, slidingWindowCounter, slidingWindowLog, tokenBucket } from "../../src/index.js";
import { createLimit } from "../../src/limits/limit.js";
import { guardStore } from "../../src/stores/guard.js";
import { fallback, inner, pausedMs, store, useFallback } from "./fallback-world.js";

useFallback();

/** Plans of one rule share one count. */
describe.each<[string, (limit: number) => Policy]>([
  ["a fixed window", (limit) => fixedWindow({ limit, window: "1h" })],
  ["a log", (limit) => slidingWindowLog({ limit, window: "1h" })],
  ["a sliding window", (limit) => slidingWindowCounter({ limit, window: "1h" })],
  ["gcra", (burst) => gcra({ limit: 1, window: "1h", burst })],
  ["a smooth bucket", (capacity) => tokenBucket({ capacity, refill: 1, every: "1h" })],
  ["an interval bucket", (capacity) => tokenBucket({ capacity, refill: 1, every: "1h", style: "interval" })],
  ["a queue", (capacity) => leakyBucket({ capacity, leak: 1, every: "1h" })],
])("when the store is back, a fallback of plans under %s", (_, policyOf) => {
  const [small, large] = [createLimit("api", policyOf(10)), createLimit("api", policyOf(100))];
  const guarded = () => guardStore("test", store, { onStoreError: { store: fallback, share: 1 } });

  /** Runs `use` during an outage, then brings the store back. */
  async function away(use: () => unknown): Promise<void> {
    store.fault = "rejects";
    await use();
    store.fault = undefined;
    await vi.advanceTimersByTimeAsync(pausedMs);
  }

  it("hands over all usage of a large plan, even if a small plan asks first", async () => {
    const guard = guarded();
    const calm = simpleStore();
    await away(async () => {
      for (const of of [guard, calm]) {
        await of.consume(large, "k", 80);
        await of.consume(small, "k", 1);
      }
    });
    for (const asking of [small, large]) {
      const { allowed, remaining } = calm.consume(asking, "k", 5);
      expect(await guard.consume(asking, "k", 5)).toMatchObject({ allowed, remaining, degraded: false });
    }
  });

  it("keeps the usage that does not fit into the store, even if a small plan asks first", async () => {
    const guard = guarded();
    inner.consume(large, "k", 90);
    await away(() => guard.consume(large, "k", 30));
    for (let i = 0; i < 2; i++) expect(await guard.consume(small, "k", 1)).toMatchObject({ allowed: false, degraded: false });
    expect([inner.peek(large, "k").remaining, fallback.peek(large, "k").remaining]).toEqual([0, 80]);
  });
});
