import { consumeAll, createLimiter, fixedWindow } from "@floodgate/core";
import type { RedisServer } from "@floodgate/test-servers";
import type { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { expectGarbage } from "../../../test/garbage.js";
import { type RedisStoreOptions, redisStore } from "../src/index.js";
import { runsDuring } from "./commands.js";
import { patienceMs } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

let server: RedisServer;
let redis: Redis;
useRedis((started, client) => {
  server = started;
  redis = client;
});

const limiter = (name: string, limit: number, options?: RedisStoreOptions) =>
  createLimiter({ name, policy: fixedWindow({ limit, window: "365d" }), store: redisStore(redis, options), timeoutMs: patienceMs });

test("stores of one client and prefix share a name's count, so the name has one policy", () => {
  limiter("default", 100);
  for (const options of [{}, { denyCache: false }, { clock: () => 0 }, { prefix: "floodgate" }]) {
    expect(() => limiter("default", 5, options)).toThrow(expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN" }));
    expect(limiter("default", 100, options).name).toBe("default");
  }
});

test("stores of another client or prefix count separately", () => {
  const scopes = [redisStore(redis), redisStore(redis, { prefix: "mine" }), redisStore(redis.duplicate({ lazyConnect: true }))].map(
    ({ scope }) => scope,
  );
  expect(new Set(scopes).size).toBe(3);
});

test("a store that the app no longer refers to leaves the memory, although its client stays", () =>
  expectGarbage(async () => {
    const store = redisStore(redis, { prefix: "brief" });
    const brief = createLimiter({ name: "brief", policy: fixedWindow({ limit: 1, window: "1h" }), store });
    for (let i = 0; i < 3; i++) await brief.consume("k");
    await brief.close();
    return store.scope as object;
  }));

test("limits on several stores of one client are checked in one step", async () => {
  const [a, b] = [limiter("a", 5), limiter("b", 1)];
  const both = [a, b].map((one) => ({ limiter: one, key: "k" }));
  expect([(await consumeAll(both)).allowed, (await consumeAll(both)).allowed]).toEqual([true, false]);
  expect((await a.peek("k")).remaining).toBe(4);
});

describe.each<[string, RedisStoreOptions]>([
  ["equal options", {}],
  ["other options", { denyCache: { maxAgeMs: 900 }, lease: { lifeMs: 5000 } }],
])("two stores of one client and prefix with %s", (which, options) => {
  test("end each other's cached rejections", async () => {
    const [one, other] = [limiter(which, 1), limiter(which, 1, options)];
    for (const [here, there] of [
      [one, other],
      [other, one],
    ] as const) {
      const charge = await here.consume("k");
      for (const limiter of [here, there]) expect((await limiter.consume("k")).allowed).toBe(false);
      await there.reset("k");
      expect((await here.consume("k")).allowed).toBe(true);
      expect((await here.consume("k")).allowed).toBe(false);
      await there.block("k", "1h");
      await there.unblock("k");
      await there.refund("k", charge);
      await there.reset("k");
    }
  });

  test("end each other's leases", async () => {
    const leasing: RedisStoreOptions = { prefix: which, lease: { lifeMs: 10_000 } };
    const [one, other] = [limiter("leased", 1000, leasing), limiter("leased", 1000, { ...leasing, ...options })];
    for (let i = 0; i < 40; i++) await one.consume("k");
    expect((await other.keyState("k")).decision.used).toBeGreaterThan(40);
    await other.block("k", "1h");
    expect((await one.consume("k")).allowed).toBe(false);
    await other.unblock("k");
    await other.reset("k");
    await one.consume("k");
    expect((await other.keyState("k")).decision.used).toBe(1);
  });
});

test("stores of one client and prefix with equal options share cached rejections and batches", async () => {
  const [one, other] = [limiter("shared", 1), limiter("shared", 1)];
  await one.peek("k");
  const together = Array.from({ length: 10 }, () => [one, other]).flat();
  // Two rounds at a time.
  expect(await runsDuring(server, () => Promise.all(together.map((limiter) => limiter.consume("k"))))).toBe(2);
  expect(await runsDuring(server, async () => expect((await other.consume("k")).allowed).toBe(false))).toBe(0);
  expect(await runsDuring(server, async () => expect((await one.consume("k")).allowed).toBe(false))).toBe(0);
});
