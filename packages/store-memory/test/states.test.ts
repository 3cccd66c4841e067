import { createLimiter, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { afterEach, describe, expect, it, vi } from "vitest";
import { memoryStore } from "../src/index.js";
import { perMinute, startMs, storeOf } from "./setting.js";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("a memory store", () => {
  it("keeps nothing for peeks, impossible costs, reset keys and fully refunded keys", () => {
    const { store } = storeOf(10);
    const limiter = createLimiter({ name: "api", policy: perMinute(5), store });
    for (let i = 0; i < 100; i++) {
      limiter.peek(`looked-at-${i}`);
      expect(limiter.consume(`impossible-${i}`, { cost: 6 }).allowed).toBe(false);
      limiter.reset(`unknown-${i}`);
    }
    expect(store.size).toBe(0);
    limiter.consume("key");
    expect(store.size).toBe(1);
    limiter.reset("key");
    expect(store.size).toBe(0);
    expect(store.evictions).toBe(0);
  });

  it("returns plain values, not promises", () => {
    const { store } = storeOf(10);
    const limiter = createLimiter({ name: "api", policy: perMinute(5), store });
    const decision = limiter.consume("key");
    for (const answer of [decision, limiter.peek("key"), store.consumeAll([{ limit: limiter.limit, key: "key", cost: 1 }])]) {
      expect(answer).not.toHaveProperty("then");
    }
    expect(limiter.refund("key", decision)).toBe(1);
    expect(limiter.reset("key")).toBeUndefined();
  });

  it("stores what a late settlement charges to an expired key", () => {
    const { store, clock } = storeOf(10);
    const limiter = createLimiter({ name: "api", policy: tokenBucket({ capacity: 5, refill: 5, every: "1m" }), store });
    const decision = limiter.consume("key");
    limiter.reset("key");
    clock.nowMs += 60_000;
    expect([limiter.settle("key", decision, 1), store.size]).toEqual([0, 0]);
    const other = limiter.consume("key");
    limiter.reset("key");
    expect([limiter.settle("key", other, 9), store.size, limiter.peek("key").retryAfterMs]).toEqual([8, 1, 48_000]);
  });

  it("starts no timer", () => {
    vi.useFakeTimers();
    const store = memoryStore({ maxKeys: 10 });
    const limiter = createLimiter({ name: "api", policy: perMinute(5), store });
    for (let i = 0; i < 100; i++) limiter.consume(i % 20, { cost: 1 + (i % 5) });
    limiter.reset(19);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("uses the system's time without a clock option", () => {
    vi.useFakeTimers({ now: startMs + 250 });
    const limiter = createLimiter({ name: "api", policy: perMinute(5), store: memoryStore() });
    expect(limiter.consume("key")).toMatchObject({ atMs: startMs + 250, resetAfterMs: 59_750 });
  });

  it("counts several names separately, whatever their keys begin with", () => {
    const { store } = storeOf(1000);
    const keys = ["a", "\0a", "\0\0a", "\x000\0a", "\x001\0a", "\x002\0a", "1\0a", "\0", ""];
    const limiters = [0, 1, 2].map((i) => createLimiter({ name: `limit ${i}`, policy: perMinute(100), store }));
    const cost = (limiter: number, key: number) => 1 + limiter * keys.length + key;
    for (const [l, limiter] of limiters.entries()) for (const [k, key] of keys.entries()) limiter.consume(key, { cost: cost(l, k) });
    for (const [l, limiter] of limiters.entries()) {
      for (const [k, key] of keys.entries()) expect(limiter.peek(key).remaining).toBe(100 - cost(l, k));
    }
    expect(store.size).toBe(limiters.length * keys.length);
  });

  it("grows a log to ten thousand entries, and shrinks it again", () => {
    const { store, clock } = storeOf(100);
    const limiter = createLimiter({ name: "log", policy: slidingWindowLog({ limit: 10_000, window: "1h" }), store });
    for (let i = 0; i < 10_000; i++) {
      expect(limiter.consume("large").remaining).toBe(9_999 - i);
      if (i % 100 === 0) limiter.consume(`small-${i % 500}`);
      clock.nowMs++;
    }
    expect(limiter.consume("large")).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 - 10_000 });
    expect(limiter.peek("small-0").remaining).toBe(9_980);
    clock.nowMs = startMs + 3_600_000 + 4_999;
    expect(limiter.peek("large").remaining).toBe(5_000);
    clock.nowMs = startMs + 2 * 3_600_000 + 10_000;
    expect(limiter.consume("large", { cost: 10_000 })).toMatchObject({ allowed: true, remaining: 0 });
  });

  it("keeps a log's memory constant under continuous traffic", () => {
    const limit = createLimit("log", slidingWindowLog({ limit: 10, window: "100ms" }));
    const cells = new Float64Array(1000);
    for (let i = 0; i < 5_000; i++) {
      limit.algorithm.decide(limit, cells, 0, startMs + 7 * i, 1, true);
      expect(limit.algorithm.size(limit.policy, cells, 0)).toBeLessThan(64);
    }
  });

  it("reuses the memory of a reset key, zeroed", () => {
    const { store } = storeOf(100);
    const limiter = createLimiter({ name: "api", policy: tokenBucket({ capacity: 5, refill: 1, every: "1s" }), store });
    for (let i = 0; i < 50; i++) {
      limiter.consume(`key-${i}`, { cost: 5 });
      limiter.reset(`key-${i}`);
      expect(limiter.peek(`key-${i + 1}`).remaining).toBe(5);
      expect(limiter.consume(`key-${i + 1}`, { cost: 2 }).remaining).toBe(3);
      limiter.reset(`key-${i + 1}`);
    }
    expect(store.size).toBe(0);
  });
});

it("rejects a maxKeys above what a Map can hold", () => {
  expect(() => memoryStore({ maxKeys: 2 ** 23 + 1 })).toThrowError("must be at most 8388608, but was 8388609");
  expect(memoryStore({ maxKeys: 2 ** 23 }).size).toBe(0);
});
