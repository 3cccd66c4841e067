import { setTimeout as sleep } from "node:timers/promises";
import {
  consumeAll,
  type FloodgateEvent,
  fixedWindow,
  type Limiter,
  observe,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import * as fc from "fast-check";
import { describe, expect, it, test, vi } from "vitest";
import { type RedisStore, redisStore } from "../src/index.js";
import { runsDuring } from "./commands.js";
import { charged, consume, leasing, limiterOn, minutely, useLeases, world } from "./leasing.js";
import { patienceMs } from "./patient-store.js";

vi.setConfig({ testTimeout: 60_000 });

useLeases();

function sum(numbers: readonly (number | undefined)[]): number {
  return numbers.reduce<number>((total, number = 0) => total + number, 0);
}

test("the numbers of leased decisions are whole and within the limit, whatever the traffic and the clock", async () => {
  const step = fc.record({
    cost: fc.integer({ min: 1, max: 4 }),
    afterMs: fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: -20, max: 30 })),
  });
  const policies = [
    slidingWindowCounter({ limit: 19, window: "7ms" }),
    fixedWindow({ limit: 40, window: "20ms" }),
    slidingWindowLog({ limit: 30, window: "9ms" }),
  ];
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...policies), fc.array(step, { minLength: 15, maxLength: 40 }), async (policy, steps) => {
      const limiter = limiterOn(leasing(), policy, { name: `numbers ${runs++}` });
      for (const { cost, afterMs } of steps) {
        world.nowMs += afterMs;
        const { limit, remaining, retryAfterMs, resetAfterMs } = await limiter.consume("hot", { cost });
        expect(remaining).toBeGreaterThanOrEqual(0);
        expect(remaining).toBeLessThanOrEqual(limit);
        expect([remaining, retryAfterMs, resetAfterMs].every(Number.isSafeInteger)).toBe(true);
      }
    }),
    { numRuns: 30 },
  );
});

test("one large request makes no key hot: it is decided as without leases, and nothing is taken ahead", async () => {
  const limiter = limiterOn(leasing(), fixedWindow({ limit: 10, window: "1m" }));
  expect(await limiter.consume("hot", { cost: 10 })).toMatchObject({ allowed: true, remaining: 0 });
  const other = limiterOn(leasing(), minutely, { name: "other" });
  await other.consume("hot", { cost: 500 });
  expect(await charged(other)).toBe(500);
});

describe("a lease", () => {
  it("spends units of a hot key without asking Redis, gives back the others, and is an event when it begins and ends", async () => {
    const client = world.redis.duplicate();
    const store = redisStore(client, { lease: true, clock: () => world.nowMs, prefix: world.prefix });
    const limiter = limiterOn(store, minutely, { name: world.prefix });
    const sent = vi.spyOn(client, "sendCommand");
    const events: (FloodgateEvent & { readonly type: "lease" })[] = [];
    // Leases of other tests may end meanwhile.
    const stop = observe((event) => void (event.type === "lease" && event.name === world.prefix && events.push(event)));
    await consume(limiter, 300);
    const runs = sent.mock.calls.filter(([{ name }]) => name.startsWith("eval")).length;
    expect(await charged(limiter)).toBeGreaterThan(300);
    await store.releaseLeases();
    stop();
    expect(await charged(limiter)).toBe(300);
    client.disconnect();
    const begun = events.filter(({ spent }) => spent === undefined);
    const ended = events.filter(({ spent }) => spent !== undefined);
    expect(new Set(events.map(({ key }) => key))).toEqual(new Set(["hot"]));
    expect(sum(ended.map(({ units }) => units))).toBe(sum(begun.map(({ units }) => units)));
    const asked = 300 - sum(ended.map(({ spent }) => spent));
    // Ten requests make the key hot. While a lease is fetched, a few more ask Redis: the answer to those sent later comes after it.
    expect(asked).toBeLessThanOrEqual(10 + 3 * begun.length);
    // Each lease may be twice as large as the one before.
    expect(begun.length).toBeLessThanOrEqual(10);
    // What `consume` asks in the end is one run more, and so is the source of each of two scripts.
    expect(runs).toBeLessThanOrEqual(asked + begun.length + ended.length + 3);
    expect(runs).toBeGreaterThanOrEqual(begun.length);
  });

  it("is not taken for a key that few requests ask for", async () => {
    const limiter = limiterOn(leasing(), minutely);
    for (let i = 0; i < 30; i++) {
      await consume(limiter, 3);
      world.nowMs += 50;
    }
    expect(await charged(limiter)).toBeLessThanOrEqual(90);
    expect(await world.redis.keys(`${world.prefix}:*:leases`)).toEqual([]);
  });

  it("shows what remains as last seen, less what was spent here", async () => {
    const limiter = limiterOn(leasing(), minutely);
    await consume(limiter, 20);
    const first = await limiter.consume("hot");
    const second = await limiter.consume("hot", { cost: 3 });
    expect(second).toMatchObject({ allowed: true, limit: 1000, cost: 3, retryAfterMs: 0, degraded: false });
    expect([first.remaining, second.remaining]).toEqual([979, 976]);
    expect((await limiter.peek("hot")).remaining).toBe(976);
  });

  it.each([
    ["a fixed window", minutely],
    ["a token bucket", tokenBucket({ capacity: 1000, refill: 1, every: "1d" })],
    ["a log", slidingWindowLog({ limit: 1000, window: "1h" })],
  ])("admits the limit of %s exactly, with several processes, once unused units were given back", async (_, policy) => {
    const stores = Array.from({ length: 3 }, () => leasing());
    const limiters = stores.map((store) => limiterOn(store, policy));
    const allowed = await Promise.all(limiters.map((limiter, i) => consume(limiter, 100 + 300 * i)));
    let sum = allowed.reduce((total, count) => total + count, 0);
    expect(sum).toBeLessThanOrEqual(1000);
    for (const store of stores) await store.releaseLeases();
    expect(await charged(limiters[0] as Limiter<"async">)).toBe(sum);
    world.nowMs += 1000;
    sum += await consume(limiters[0] as Limiter<"async">, 1000);
    await stores[0]?.releaseLeases();
    sum += await consume(limiters[1] as Limiter<"async">, 50);
    expect(sum).toBe(1000);
  });

  it("is shared among the processes that leased the key lately: each gets at most its part of half of what remains", async () => {
    const [first, second] = [
      limiterOn(leasing(), fixedWindow({ limit: 200, window: "1m" })),
      limiterOn(leasing(), fixedWindow({ limit: 200, window: "1m" })),
    ];
    await consume(first, 10);
    await consume(second, 10);
    // 10 of the first, at most 95 leased by it; 10 of the second.
    expect(await charged(second)).toBeLessThanOrEqual(10 + 95 + 10 + 42);
    expect(await charged(second)).toBeGreaterThan(20);
  });

  it("is not shared with a process that has leased nothing for two lives", async () => {
    const [here, there] = [limiterOn(leasing(), minutely), limiterOn(leasing(), minutely)];
    await consume(there, 50);
    for (let i = 0; i < 6; i++) {
      await consume(here, 20);
      world.nowMs += 101;
      // Processes are counted by the server's clock.
      await sleep(60);
    }
    for (const members of await world.redis.keys(`${world.prefix}:*:leases`)) expect(await world.redis.zcard(members)).toBeLessThan(2);
  });

  it("ends after its life, and what it did not spend comes back", async () => {
    const limiter = limiterOn(leasing({ lease: { lifeMs: 10 } }), minutely);
    await consume(limiter, 20);
    world.nowMs += 10;
    await vi.waitFor(async () => expect(await charged(limiter)).toBe(20), { timeout: patienceMs });
  });

  it("ends before the edge of a fixed window, and is never spent in the next one", async () => {
    world.nowMs = 60_000 * 28_333_333 - 12;
    const limiter = limiterOn(leasing(), minutely);
    await consume(limiter, 50);
    world.nowMs += 12;
    const { remaining } = await limiter.consume("hot");
    expect(remaining).toBe(999);
  });

  it("is not spent when the clock steps back before its debit", async () => {
    const limiter = limiterOn(leasing(), minutely);
    await consume(limiter, 50);
    world.nowMs -= 1;
    const runs = await runsDuring(world.server, () => limiter.consume("hot"));
    expect(runs).toBeGreaterThanOrEqual(1);
  });

  it("ends with a block here, and its units come back", async () => {
    const store = leasing();
    const limiter = limiterOn(store, minutely);
    await consume(limiter, 50);
    await limiter.block("hot", "1h");
    expect(await consume(limiter, 5)).toBe(0);
    await store.releaseLeases();
    await limiter.unblock("hot");
    expect(await charged(limiter)).toBe(50);
    expect(await consume(limiter, 5)).toBe(5);
  });

  it("is granted to no blocked key: a block elsewhere holds within a life", async () => {
    const [here, there] = [limiterOn(leasing(), minutely), limiterOn(leasing(), minutely)];
    await consume(here, 50);
    await there.block("hot", "1h");
    world.nowMs += 100;
    expect(await consume(here, 50)).toBe(0);
  });

  it("ends with a reset here, and gives back nothing to the new state", async () => {
    const store = leasing();
    const limiter = limiterOn(store, minutely);
    await consume(limiter, 50);
    await limiter.reset("hot");
    expect((await limiter.consume("hot")).remaining).toBe(999);
    await store.releaseLeases();
    expect(await charged(limiter)).toBe(1);
  });

  it("gives back nothing to a state that was reset elsewhere", async () => {
    const store = leasing();
    const [here, there] = [limiterOn(store, minutely), limiterOn(leasing(), minutely)];
    await consume(here, 50);
    await there.reset("hot");
    await there.consume("hot", { cost: 4 });
    await store.releaseLeases();
    expect(await charged(there)).toBe(4);
  });

  it("is a charge whose parts can be settled and refunded, each once", async () => {
    const store = leasing();
    const limiter = limiterOn(store, minutely);
    await consume(limiter, 50);
    const decision = await limiter.consume("hot", { cost: 4 });
    expect(await limiter.settle("hot", decision, 1)).toBe(-3);
    expect(await limiter.refund("hot", decision)).toBe(0);
    const other = await limiter.consume("hot", { cost: 2 });
    expect(await limiter.settle("hot", other, 10)).toBe(8);
    await store.releaseLeases();
    expect(await charged(limiter)).toBe(50 + 1 + 10);
  });

  it("is given back when its limiter closes", async () => {
    const store = leasing();
    const limiter = limiterOn(store, minutely);
    await consume(limiter, 50);
    limiter.close();
    const other = limiterOn(leasing(), minutely);
    await vi.waitFor(async () => expect(await charged(other)).toBe(50), { timeout: patienceMs });
  });

  it.each<[string, (store: RedisStore) => Promise<void>]>([
    ["when all are", (store) => store.releaseLeases()],
    [
      "after its life",
      async () => {
        world.nowMs += 101;
      },
    ],
  ])("is given back %s, although the lease of another key has ended before", async (_, end) => {
    const store = leasing();
    const limiter = limiterOn(store, minutely);
    for (const key of ["one", "other"]) await consume(limiter, 50, key);
    expect(await charged(limiter, "other")).toBeGreaterThan(50);
    await limiter.reset("one");
    // The answer to the end of its lease has arrived.
    expect(await charged(limiter, "one")).toBe(0);
    await end(store);
    await vi.waitFor(async () => expect(await charged(limiter, "other")).toBe(50), { timeout: patienceMs });
  });

  it("is spent no more after the limit was lowered", async () => {
    const store = leasing();
    const before = limiterOn(store, minutely);
    await consume(before, 50);
    before.close();
    const after = limiterOn(store, fixedWindow({ limit: 50, window: "1m" }));
    expect(await consume(after, 10)).toBe(0);
  });

  it("counts for several limits at once: spent only if each has units here", async () => {
    const store = leasing();
    const [one, other] = [limiterOn(store, minutely), limiterOn(store, fixedWindow({ limit: 90, window: "1m" }), { name: "small" })];
    let allowed = 0;
    for (let i = 0; i < 120; i++) {
      const both = await consumeAll([
        { limiter: one, key: "hot" },
        { limiter: other, key: "all" },
      ]);
      if (both.allowed) allowed++;
    }
    await store.releaseLeases();
    expect(allowed).toBeLessThanOrEqual(90);
    expect(allowed).toBeGreaterThanOrEqual(60);
    expect([await charged(one), await charged(other, "all")]).toEqual([allowed, allowed]);
  });
});
