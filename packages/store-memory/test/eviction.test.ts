import { createLimiter, type FloodgateEvent, fixedWindow, type Limiter, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { createLimit, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { perMinute, storeOf } from "./setting.js";

function evicted(events: readonly FloodgateEvent[]): string[] {
  return events.flatMap((event) => (event.type === "evicted" ? [event.key] : []));
}

describe("a full memory store", () => {
  it("never holds more than maxKeys keys, and counts every eviction", () => {
    const steps = fc.array(
      fc.record({ key: fc.nat(40), cost: fc.integer({ min: 1, max: 5 }), byMs: fc.constantFrom(0, 1, 7_000, 60_000) }),
      {
        maxLength: 150,
        size: "max",
      },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), steps, (maxKeys, list) => {
        const { store, events, clock } = storeOf(maxKeys);
        const limiters = [
          createLimiter({ name: "window", policy: perMinute(5), store }),
          createLimiter({ name: "log", policy: slidingWindowLog({ limit: 5, window: "1m" }), store }),
        ];
        for (const { key, cost, byMs } of list) {
          clock.nowMs += byMs;
          limiters[key % 2]?.consume(key, { cost });
          if (store.size > maxKeys || events.length !== store.evictions) {
            expect.fail(`${store.size} keys, ${store.evictions} evictions, ${events.length} events`);
          }
        }
        expect(evicted(events).length).toBe(store.evictions);
      }),
      runs(200),
    );
  });

  for (const [name, policy] of [
    ["fixed window", perMinute(10)],
    ["sliding log", slidingWindowLog({ limit: 10, window: "1m" })],
    ["token bucket", tokenBucket({ capacity: 10, refill: 10, every: "1m" })],
  ] as const) {
    it(`keeps blocked and nearly blocked keys when fresh keys are sprayed (${name})`, () => {
      const { store } = storeOf(1000);
      const limiter = createLimiter({ name: "api", policy, store });
      limiter.consume("blocked", { cost: 10 });
      limiter.consume("one short", { cost: 9 });
      for (let i = 0; i < 50_000; i++) limiter.consume(`sprayed-${i}`);
      expect(store.size).toBe(1000);
      expect(limiter.peek("blocked").allowed).toBe(false);
      expect(limiter.peek("one short").remaining).toBe(1);
      expect(store.evictions).toBe(50_002 - 1000);
    });
  }

  it("keeps them, and keys in debt, even if each sprayed key uses half of its limit", () => {
    const { store } = storeOf(200);
    const limiter = createLimiter({ name: "api", policy: perMinute(10), store });
    limiter.consume("blocked", { cost: 10 });
    limiter.consume("one short", { cost: 9 });
    limiter.settle("in debt", limiter.consume("in debt"), 30);
    for (let i = 0; i < 50_000; i++) limiter.consume(`sprayed-${i}`, { cost: 5 });
    expect(limiter.peek("blocked").allowed).toBe(false);
    expect(limiter.peek("in debt").allowed).toBe(false);
    expect(limiter.peek("one short").remaining).toBe(1);
  });

  it("evicts keys that used less before keys that used more", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], { minLength: 2, maxLength: 7 }), (costs) => {
        const { store, events } = storeOf(costs.length);
        const limiter = createLimiter({ name: "api", policy: perMinute(12), store });
        for (const cost of costs) limiter.consume(`used ${cost}`, { cost });
        // Each new key uses its whole limit, so it evicts the key that used least.
        costs.forEach((_, i) => {
          limiter.consume(`blocked ${i}`, { cost: 12 });
        });
        const least = costs.filter((cost) => cost < 12).sort((a, b) => a - b);
        expect(evicted(events).slice(0, least.length)).toEqual(least.map((cost) => `used ${cost}`));
      }),
      runs(100),
    );
  });

  it("evicts the key nearest its reset when all are blocked or in debt", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(50), { minLength: 1, maxLength: 12 }), (debts) => {
        const { store, events } = storeOf(debts.length);
        const limiter = createLimiter({ name: "api", policy: tokenBucket({ capacity: 3, refill: 1, every: "1m" }), store });
        for (const debt of debts) limiter.settle(`owes ${debt}`, limiter.consume(`owes ${debt}`), 3 + debt);
        for (let i = 0; i < debts.length; i++) limiter.settle(`newcomer ${i}`, limiter.consume(`newcomer ${i}`), 100);
        const order = [...debts].sort((a, b) => a - b);
        expect(evicted(events)).toEqual(order.map((debt) => `owes ${debt}`));
      }),
      runs(100),
    );
  });

  it("keeps keys that were blocked by hand, however many keys are banned for longer, until their block ends", () => {
    const { store, events, clock } = storeOf(100);
    const limiter = createLimiter({ name: "api", policy: perMinute(10), store });
    limiter.block("by hand", "1m");
    store.block("api", "both", 1000, "ban");
    limiter.block("both", "1m");
    const spray = (name: string): void => {
      for (let i = 0; i < 1000; i++) {
        limiter.consume(`${name} ${i}`, { cost: 10 });
        store.block("api", `${name} ${i}`, 3_600_000, "ban");
      }
    };
    spray("banned");
    expect(limiter.peek("by hand").retryAfterMs).toBe(60_000);
    expect(limiter.peek("both").retryAfterMs).toBe(60_000);
    clock.nowMs += 60_000;
    expect(limiter.peek("by hand").allowed).toBe(true);
    spray("later");
    expect(store.size).toBe(100);
    expect(evicted(events)).not.toContain("by hand");
  });

  it("keeps all keys that were blocked by hand, even if most of the store is blocked by hand", () => {
    const { store, events } = storeOf(100);
    const limiter = createLimiter({ name: "api", policy: perMinute(10), store });
    const other = createLimiter({ name: "other", policy: perMinute(10), store });
    for (let i = 0; i < 90; i++) limiter.block(`by hand ${i}`, "1h");
    for (let i = 0; i < 1000; i++) {
      limiter.consume(`sprayed ${i}`, { cost: 10 });
      other.consume(`sprayed ${i}`, { cost: 10 });
      store.block("api", `sprayed ${i}`, 86_400_000, "ban");
    }
    for (let i = 0; i < 90; i++) expect(limiter.peek(`by hand ${i}`).allowed).toBe(false);
    // A store that is full of them still keeps its bound.
    for (let i = 90; i < 150; i++) limiter.block(`by hand ${i}`, "2h");
    expect(store.size).toBe(100);
    const gone = evicted(events).filter((key) => key.startsWith("by hand"));
    expect(gone.length).toBe(50);
    // Those with the nearest end.
    expect(gone.every((key) => Number(key.slice(8)) < 90)).toBe(true);
  });

  it("keeps the ban of a key that is decided on, also if another limit of the request needs its place", () => {
    const { store, events } = storeOf(2);
    const log = createLimit("log", slidingWindowLog({ limit: 1, window: "1m", countRejected: true }));
    const other = createLimit("other", perMinute(10));
    store.block("other", "banned", 1000, "ban");
    store.block("other", "banned for longer", 2000, "ban");
    const decisions = store.consumeAll([
      { limit: log, key: "banned", cost: 2 },
      { limit: other, key: "banned", cost: 1 },
    ]);
    expect(decisions[1]).toMatchObject({ allowed: false, blocked: { kind: "ban" } });
    expect(store.peek(other, "banned").blocked?.kind).toBe("ban");
    expect(evicted(events)).toEqual(["banned for longer"]);
  });

  it("keeps keys that were blocked by hand under many names", () => {
    const { store, events } = storeOf(40);
    const limiters = Array.from({ length: 20 }, (_, i) => createLimiter({ name: `rule ${i}`, policy: perMinute(10), store }));
    const [first] = limiters as [Limiter<"sync">];
    for (const limiter of limiters) limiter.block("by hand", "1h");
    for (let i = 0; i < 20; i++) first.consume(`blocked ${i}`, { cost: 10 });
    for (const limiter of limiters.slice(1)) limiter.consume("newcomer", { cost: 10 });
    expect(evicted(events)).not.toContain("by hand");
  });

  it("keeps keys that used more since they were listed, if sprayed keys use a quarter of the limit less", () => {
    const { store } = storeOf(200);
    const limiter = createLimiter({ name: "api", policy: perMinute(100), store });
    for (let i = 0; i < 100; i++) for (let used = 0; used < 30; used++) limiter.consume(`busy ${i}`);
    for (let i = 0; i < 5000; i++) limiter.consume(`sprayed ${i}`);
    for (let i = 0; i < 100; i++) expect(limiter.peek(`busy ${i}`).remaining).toBe(70);
  });

  it("evicts keys that can pass again before blocked keys of another rule", () => {
    const { store, events, clock } = storeOf(100);
    const day = createLimiter({ name: "day", policy: fixedWindow({ limit: 1, window: "1d" }), store });
    const bucket = createLimiter({ name: "bucket", policy: tokenBucket({ capacity: 10, refill: 1, every: "1s" }), store });
    for (let i = 0; i < 90; i++) day.consume(`blocked ${i}`);
    for (let i = 0; i < 10; i++) bucket.consume(`recovers ${i}`, { cost: 10 });
    clock.nowMs += 3000;
    for (let i = 0; i < 10; i++) day.consume(`later ${i}`);
    expect(evicted(events).sort()).toEqual(Array.from({ length: 10 }, (_, i) => `recovers ${i}`));
  });

  it("removes expired keys without counting an eviction", () => {
    const { store, events, clock } = storeOf(100);
    const limiter = createLimiter({ name: "api", policy: perMinute(10), store });
    for (let i = 0; i < 100; i++) limiter.consume(`old-${i}`, { cost: (i % 10) + 1 });
    clock.nowMs += 60_000;
    for (let i = 0; i < 100; i++) limiter.consume(`new-${i}`, { cost: (i % 10) + 1 });
    expect(store.size).toBeLessThanOrEqual(100);
    expect(store.evictions).toBe(0);
    expect(events).toEqual([]);
    expect(limiter.peek("new-9").allowed).toBe(false);
  });

  it("removes expired keys before it evicts a live one", () => {
    const { store, clock } = storeOf(6);
    const limiter = createLimiter({ name: "api", policy: perMinute(10), store });
    const hourly = createLimiter({ name: "hourly", policy: fixedWindow({ limit: 100, window: "1h" }), store });
    hourly.consume("live");
    for (let i = 0; i < 5; i++) limiter.consume(`old-${i}`, { cost: 4 + i });
    clock.nowMs += 60_000;
    for (let i = 0; i < 5; i++) limiter.consume(`new-${i}`, { cost: 5 });
    expect(store.evictions).toBe(0);
    expect(hourly.peek("live").remaining).toBe(99);
  });

  it("reports the name and key of each evicted key", () => {
    const { store, events } = storeOf(1);
    const keys = ["a", "\0a", "\x001\0a", "\x000\0", ""];
    const [first, second] = [
      createLimiter({ name: "first", policy: perMinute(5), store }),
      createLimiter({ name: "second", policy: perMinute(5), store }),
    ];
    for (const key of keys) {
      first.consume(key);
      second.consume(key);
    }
    first.consume("last");
    expect(events).toEqual(keys.flatMap((key) => ["first", "second"].map((name) => ({ type: "evicted", name, key }))));
    expect(store.evictions).toBe(10);
  });

  it("ranks keys by the smallest plan of a name, so a key that is blocked there counts as blocked", () => {
    const { store } = storeOf(500);
    const [large, small] = [createLimit("plans", perMinute(10_000)), createLimit("plans", perMinute(10))];
    store.consume(large, "blocked by the small plan", 10);
    store.consume(small, "blocked", 10);
    const other = createLimiter({ name: "other", policy: perMinute(10), store });
    for (let i = 0; i < 25_000; i++) {
      store.consume(large, `sprayed-${i}`, 1);
      other.consume(`sprayed-${i}`, { cost: 2 });
    }
    expect(store.peek(small, "blocked").allowed).toBe(false);
    expect(store.peek(small, "blocked by the small plan").allowed).toBe(false);
    expect(store.size).toBe(500);
  });

  it("ranks keys by the largest plan too, so a key is kept after the small plan's bucket is full again", () => {
    const { store, clock } = storeOf(500);
    const [large, small] = [1000, 10].map((capacity) => createLimit("plans", tokenBucket({ capacity, refill: 10, every: "1m" })));
    store.consume(large as Limit, "pays", 900);
    clock.nowMs += 60_000;
    for (let i = 0; i < 25_000; i++) store.consume(small as Limit, `sprayed-${i}`, 1);
    expect(store.peek(large as Limit, "pays").remaining).toBe(110);
  });

  it.each([0, 1])("ranks keys of plans with the same capacity by the slower one, whichever was used first (%i)", (first) => {
    const { store, clock } = storeOf(500);
    const [slow, fast] = [1, 10].map((refill) => createLimit("plans", tokenBucket({ capacity: 10, refill, every: "1m" }))) as [
      Limit,
      Limit,
    ];
    store.consume([slow, fast][first] as Limit, "first", 1);
    store.consume(slow, "blocked", 10);
    clock.nowMs += 59_000;
    for (let i = 0; i < 25_000; i++) store.consume(fast, `sprayed-${i}`, 1);
    expect(store.peek(slow, "blocked").allowed).toBe(false);
  });

  it("reports each key that it drops after the clock stepped back, even if only a plan between the others counts it", () => {
    const { store, events, clock } = storeOf(3);
    const plans = [
      { capacity: 11, refill: 2 },
      { capacity: 1, refill: 1 },
      { capacity: 11, refill: 1 },
    ].map((plan) => createLimit("plans", tokenBucket({ ...plan, every: "1m" })));
    for (const plan of plans) store.peek(plan, "");
    const slow = plans[2] as Limit;
    for (const key of ["a", "b", "c"]) store.consume(slow, key, 1);
    clock.nowMs -= 10 * 60_000;
    store.consume(slow, "new", 1);
    expect(events).toEqual([{ type: "evicted", name: "plans", key: expect.any(String) }]);
    expect(["a", "b", "c"].filter((key) => store.peek(slow, key).remaining === 10)).toHaveLength(2);
  });
});
