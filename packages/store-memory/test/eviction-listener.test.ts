import { consumeAll, createLimiter, type Limiter, tokenBucket } from "@floodgate/core";
import { asCharge } from "@floodgate/core/store";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type MemoryStore, memoryStore } from "../src/index.js";
import { startMs } from "./setting.js";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("an eviction listener", () => {
  const policy = tokenBucket({ capacity: 10, refill: 10, every: "1m" });

  /** A full store of two keys, and two unused limiters. */
  function fullStore(listen: (limiters: readonly Limiter<"sync">[]) => void): { store: MemoryStore; limiters: Limiter<"sync">[] } {
    const store = memoryStore({ maxKeys: 2, clock: () => startMs, onEvent: () => listen(limiters) });
    const limiters = ["one", "other"].map((name) => createLimiter({ name, policy, store }));
    const before = createLimiter({ name: "before", policy, store });
    before.consume("a");
    before.consume("b");
    return { store, limiters };
  }

  const acts: [string, number[], (limiters: readonly Limiter<"sync">[]) => unknown][] = [
    ["a request", [6, 10], ([one]) => one?.consume("k", { cost: 4 })],
    ["one under several limits", [6, 6], (limiters) => consumeAll(limiters.map((limiter) => ({ limiter, key: "k", cost: 4 })))],
    ["a settlement", [6, 10], ([one]) => one?.store.settle(one.limit, "k", asCharge(one.peek("k")), 5)],
  ];

  it.each(acts)("runs after %s is complete", (_, remaining, act) => {
    const told: number[][] = [];
    const { store, limiters } = fullStore((all) => told.push(all.map((limiter) => limiter.peek("k").remaining)));
    act(limiters);
    expect(told).toEqual(Array.from({ length: store.evictions }, () => remaining));
    expect(store.evictions).toBeGreaterThan(0);
  });

  it.each(acts)("may throw: %s still completes, and later evictions are still reported", (_, remaining, act) => {
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
    let told = 0;
    const { store, limiters } = fullStore(() => {
      told++;
      throw new Error("from the listener");
    });
    act(limiters);
    expect(limiters.map((limiter) => limiter.peek("k").remaining)).toEqual(remaining);
    expect(told).toBe(store.evictions);
  });

  it.each(acts)("may call the store, which keeps its bound and starts fresh keys at zero: %s", (_, _remaining, act) => {
    let told = 0;
    const left: (number | undefined)[] = [];
    const { store, limiters } = fullStore(([one]) => {
      if (told++ < 5) left.push(one?.consume(`asked-${told}`).remaining);
    });
    act(limiters);
    expect(told).toBe(store.evictions);
    expect(left).toEqual(Array.from({ length: Math.min(told, 5) }, () => 9));
    expect(store.size).toBe(2);
    expect(limiters[0]?.consume("fresh").remaining).toBe(9);
  });
});
