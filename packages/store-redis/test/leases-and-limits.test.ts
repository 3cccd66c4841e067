import { consumeAll, fixedWindow, type Limiter, leakyBucket, type Policy, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { describe, expect, it, vi } from "vitest";
import { type RedisStoreOptions, redisStore } from "../src/index.js";
import { charged, consume, leasing, limiterOn, minutely, useLeases, world } from "./leasing.js";
import { patienceMs } from "./patient-store.js";

vi.setConfig({ testTimeout: 60_000 });

useLeases();

describe("a rejection while units are leased", () => {
  it.each([
    ["a fixed window", fixedWindow({ limit: 60, window: "1h" })],
    ["a token bucket", tokenBucket({ capacity: 60, refill: 1, every: "1d" })],
    ["a log", slidingWindowLog({ limit: 60, window: "1h" })],
  ])("of %s gives them back here, and is repeated elsewhere for a life at most", async (_, policy) => {
    const [here, there] = [limiterOn(leasing(), policy), limiterOn(leasing(), policy)];
    await consume(here, 20);
    const left = 60 - (await charged(here));
    expect(left).toBeLessThan(40);
    await there.consume("hot", { cost: left });
    expect((await there.consume("hot")).allowed).toBe(false);
    expect((await here.consume("hot", { cost: 30 })).allowed).toBe(false);
    expect((await there.consume("hot")).allowed).toBe(false);
    const unused = 40 - left;
    expect((await here.consume("hot", { cost: unused - 1 })).allowed).toBe(true);
    world.nowMs += 101;
    expect((await there.consume("hot")).allowed).toBe(true);
    expect((await there.consume("hot")).allowed).toBe(false);
  });

  it.each([
    ["a fixed window", fixedWindow({ limit: 20, window: "1h" })],
    ["a token bucket", tokenBucket({ capacity: 20, refill: 1, every: "1d" })],
    ["a log", slidingWindowLog({ limit: 20, window: "1h" })],
  ])("of %s is not the last word: thirty requests at once get all of a limit of 20", async (_, policy) => {
    const [store, wide] = [leasing(), fixedWindow({ limit: 1000, window: "1h" })];
    const alone = limiterOn(store, policy);
    const pair = [limiterOn(store, policy, { name: "narrow" }), limiterOn(store, wide, { name: "wide" })].map((limiter) => ({
      limiter,
      key: "hot",
    }));
    for (const ask of [() => alone.consume("hot"), () => consumeAll(pair)] as (() => Promise<{ allowed: boolean }>)[]) {
      const decisions = await Promise.all(Array.from({ length: 30 }, ask));
      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(20);
    }
    await store.releaseLeases();
    expect(await charged(pair[1]?.limiter as Limiter<"async">)).toBe(20);
  });

  it("leaves a blocked key blocked, although units were leased before", async () => {
    const [here, there] = [limiterOn(leasing(), minutely), limiterOn(leasing(), minutely)];
    await consume(here, 50);
    await there.block("hot", "1h");
    expect((await here.consume("hot", { cost: 500 })).allowed).toBe(false);
    expect(await consume(here, 10)).toBe(0);
  });
});

it("a reset under a limit that leases ends the cached rejections of one that does not", async () => {
  const store = leasing({ lease: false });
  const [leased, other] = [limiterOn(store, minutely, { lease: true }), limiterOn(store, minutely)];
  await other.consume("hot", { cost: 1000 });
  expect((await other.consume("hot")).allowed).toBe(false);
  await leased.reset("hot");
  expect((await other.consume("hot")).allowed).toBe(true);
});

describe("a lease under several limits", () => {
  it.each<[string, { readonly policy: Policy; readonly lease?: boolean; readonly key: (i: number) => string }]>([
    ["whose other key is asked for rarely", { policy: minutely, key: (i) => `user ${i}` }],
    ["whose other limit never leases", { policy: minutely, lease: false, key: () => "all" }],
    ["whose other limit is a queue", { policy: leakyBucket({ capacity: 1000, leak: 1, every: "1m" }), key: () => "all" }],
  ])("is not taken for requests %s, because they could never spend it", async (_, { policy, lease, key }) => {
    const store = leasing();
    const [one, other] = [limiterOn(store, minutely), limiterOn(store, policy, { name: "other", ...(lease === false && { lease }) })];
    for (let i = 0; i < 60; i++) {
      await consumeAll([
        { limiter: one, key: "hot" },
        { limiter: other, key: key(i) },
      ]);
    }
    expect(await charged(one)).toBe(60);
    expect(await world.redis.keys(`${world.prefix}:*:leases`)).toEqual([]);
  });
});

it("a dry run charges nothing of what was leased, and takes no lease", async () => {
  const store = leasing();
  const [one, other] = [limiterOn(store, minutely), limiterOn(store, minutely, { name: "other" })];
  const both = [one, other].map(({ limit }) => ({ limit, key: "hot", cost: 1 }));
  for (let i = 0; i < 50; i++) await store.consumeAll(both, patienceMs);
  const looks = both.map((check, i) => ({ ...check, dryRun: i === 0 }));
  for (let i = 0; i < 50; i++) expect((await store.consumeAll(looks, patienceMs)).every(({ allowed }) => allowed)).toBe(true);
  await store.releaseLeases();
  expect([await charged(one), await charged(other)]).toEqual([50, 100]);
});

describe("the option `lease`", () => {
  it("of a limit works without that of the store, and switches that of the store off", async () => {
    const off = limiterOn(leasing(), minutely, { lease: false });
    await consume(off, 50);
    expect(await charged(off)).toBe(50);
    const on = limiterOn(leasing({ lease: false }), minutely, { name: "on", lease: true });
    await consume(on, 50);
    expect(await charged(on)).toBeGreaterThan(50);
  });

  it("of the store leaves queues and logs of rejections alone, and that of such a limit is an error that says why", async () => {
    const store = leasing();
    const policies = [
      leakyBucket({ capacity: 100, leak: 1, every: "1h" }),
      slidingWindowLog({ limit: 100, window: "1h", countRejected: true }),
    ];
    for (const [i, policy] of policies.entries()) {
      const limiter = limiterOn(store, policy, { name: `never ${i}` });
      await consume(limiter, 50);
      expect(await charged(limiter)).toBe(50);
      expect(() => limiterOn(store, policy, { name: `never ${i}`, lease: true })).toThrow(
        expect.objectContaining({ code: "FLOODGATE_CONFLICTING_OPTIONS" }),
      );
    }
  });

  it.each([[{ lifeMs: 9 }], [{ lifeMs: 10_001 }], [{ lifeMs: 50.5 }], ["yes"], [{ life: 100 }]])("rejects %o", (lease) => {
    expect(() => redisStore(world.redis, { lease } as RedisStoreOptions)).toThrow(/lease/);
  });
});
