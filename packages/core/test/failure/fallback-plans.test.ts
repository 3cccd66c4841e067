import { describe, expect, it, vi } from "vitest";
import { variants } from "../../../conformance/src/store/algorithms.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { createLimit } from "../../src/decide/decision.js";
import { guardStore } from "../../src/failure/store-guard.js";
import { fallback, inner, pausedMs, store, useFallback } from "./fallback-world.js";

useFallback();

/** Plans of one rule share one count. */
describe.each(variants)("when the store is back, a fallback of plans under $name", ({ of }) => {
  const [small, large] = [createLimit("api", of(10, 1, "1h")), createLimit("api", of(100, 1, "1h"))];
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

  it("hands over all usage under the largest plan, even if a small plan, which has no room for it, was used last", async () => {
    const guard = guarded();
    const calm = simpleStore();
    inner.consume(large, "k", 90);
    await away(async () => {
      for (const of of [guard, calm]) {
        await of.consume(large, "k", 3);
        await of.consume(small, "k", 1);
      }
    });
    await guard.peek(small, "k");
    const used = 100 - calm.peek(large, "k").remaining;
    expect([inner.peek(large, "k").remaining, fallback.peek(large, "k").remaining]).toEqual([
      Math.max(10 - used, 0),
      100 - Math.max(used - 10, 0),
    ]);
  });

  it("keeps the usage that does not fit into the store, even if a small plan asks first", async () => {
    const guard = guarded();
    inner.consume(large, "k", 90);
    await away(() => guard.consume(large, "k", 30));
    for (let i = 0; i < 2; i++) expect(await guard.consume(small, "k", 1)).toMatchObject({ allowed: false, degraded: false });
    expect([inner.peek(large, "k").remaining, fallback.peek(large, "k").remaining]).toEqual([0, 80]);
  });

  it("hands over a debt once, when the store has room for the other usage", async () => {
    const guard = guarded();
    inner.consume(large, "k", 100);
    await away(async () => {
      await guard.consume(large, "k", 5);
      await guard.charge(large, "k", 200);
    });
    const full = inner.keyState(large, "k").state;
    for (let i = 0; i < 3; i++) await guard.peek(large, "k");
    expect(inner.keyState(large, "k").state).toEqual(full);
  });

  it("forgets what did not fit into the store once it has drained there", async () => {
    const guard = guarded();
    inner.consume(large, "k", 95);
    await away(() => guard.consume(large, "k", 30));
    await guard.peek(large, "k");
    await vi.advanceTimersByTimeAsync(126 * 3_600_000);
    await guard.peek(large, "k");
    expect(inner.peek(large, "k").remaining).toBe(100);
  });
});
