import { consumeAll, createLimiter, fixedWindow } from "@floodgate/core";
import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { type RedisStoreOptions, redisStore } from "../src/index.js";
import { patienceMs } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

let redis: Redis;
useRedis((_, client) => {
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

test("limits on several stores of one client are checked in one step", async () => {
  const [a, b] = [limiter("a", 5), limiter("b", 1)];
  const both = [a, b].map((one) => ({ limiter: one, key: "k" }));
  expect([(await consumeAll(both)).allowed, (await consumeAll(both)).allowed]).toEqual([true, false]);
  expect((await a.peek("k")).remaining).toBe(4);
});
