import { createLimit, type Limit, type Store } from "@floodgate/core/store";
import { memoryStore } from "@floodgate/store-memory";
import type { RedisServer } from "@floodgate/test-servers";
import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { redisStore } from "../src/index.js";
import { namesOf, runsDuring, watched } from "./commands.js";
import { everyState } from "./policies.js";
import { anotherProcess, useRedis } from "./use-redis.js";

let server: RedisServer;
let redis: Redis;
useRedis((started, client) => {
  server = started;
  redis = client;
});

const timeoutMs = 20_000;
const startMs = 1_789_948_800_000;
let keys = 0;
const freshKey = (): string => `key-${keys++}`;

/** Every key of the server, with its value and the moment of its expiry. */
async function contents(): Promise<unknown[]> {
  const names = (await redis.keys("*")).sort();
  return Promise.all(names.map(async (name) => [name, await redis.getBuffer(name), await redis.pexpiretime(name)]));
}

describe.each(everyState)("inspecting a key of $stateKind", (policy) => {
  const limit = createLimit("api", policy);

  it("writes nothing and touches no expiry", async () => {
    const store = redisStore(redis);
    const key = freshKey();
    await store.consume(limit, key, 3, timeoutMs);
    await store.block(limit.name, key, 60_000, "ban", timeoutMs);
    const before = await contents();
    await store.keyState(limit, key, timeoutMs);
    await store.keyState(limit, freshKey(), timeoutMs);
    await store.keyState(createLimit("never used", policy), key, timeoutMs);
    expect(await contents()).toEqual(before);
  });

  it("shows what the memory store shows, for any setting of the deny cache", async () => {
    const clock = (): number => startMs;
    const key = freshKey();
    const stores: Store[] = [
      memoryStore({ clock }),
      ...[true, false].map((denyCache) => redisStore(redis, { clock, denyCache, prefix: freshKey() })),
    ];
    const seen = [];
    for (const store of stores) {
      for (const cost of [4, 7, 6, 1]) await store.consume(limit, key, cost, timeoutMs);
      await store.block(limit.name, key, 1000, "block", timeoutMs);
      seen.push(await store.keyState(limit, key, timeoutMs));
    }
    expect(seen[1]).toEqual(seen[0]);
    expect(seen[2]).toEqual(seen[0]);
  });

  it("takes a corrupted state for none, as peek does, until the key is reset", async () => {
    const store = redisStore(redis, { prefix: freshKey() });
    const key = freshKey();
    await store.consume(limit, key, 3, timeoutMs);
    const name = (await redis.keys(`*{${key}}*`))[0] as string;
    const state = (await redis.getBuffer(name)) as Buffer;
    await redis.set(name, state.fill(0xff, 8), "EX", 1000);
    const { decision } = await store.keyState(limit, key, timeoutMs);
    expect([decision.remaining, (await store.peek(limit, key, timeoutMs)).remaining]).toEqual([10, 10]);
    await store.reset(limit, key, timeoutMs);
    expect((await store.keyState(limit, key, timeoutMs)).state).toEqual({ kind: "empty" });
  });
});

describe("an inspection", () => {
  const limit = createLimit("api", everyState[0] as Limit["policy"]);

  it("reads the server's clock", async () => {
    const store = redisStore(redis);
    const before = await serverMs();
    const { atMs } = await store.keyState(limit, freshKey(), timeoutMs);
    expect([before <= atMs, atMs <= (await serverMs())]).toEqual([true, true]);
  });

  it("takes one command, which it shares with the decisions of the same moment", async () => {
    const store = redisStore(redis);
    const key = freshKey();
    await store.peek(limit, key, timeoutMs);
    const { commands } = await watched(server, () => store.keyState(limit, key, timeoutMs));
    expect(namesOf(commands)).toEqual(["EVALSHA"]);
    const together = () =>
      Promise.all([
        store.consume(limit, key, 4, timeoutMs),
        store.keyState(limit, key, timeoutMs),
        store.consume(limit, key, 1, timeoutMs),
      ]);
    expect(await runsDuring(server, together)).toBe(1);
    expect((await store.keyState(limit, key, timeoutMs)).state).toMatchObject({ windows: [{ count: 5 }] });
  });

  it("sees what another process has done to a key that this one knows to be rejected", async () => {
    const [here, there] = [redisStore(redis), redisStore(anotherProcess(redis))];
    const key = freshKey();
    await here.consume(limit, key, 10, timeoutMs);
    expect((await here.consume(limit, key, 1, timeoutMs)).allowed).toBe(false);
    await there.reset(limit, key, timeoutMs);
    expect((await here.keyState(limit, key, timeoutMs)).state).toEqual({ kind: "empty" });
    expect((await here.consume(limit, key, 1, timeoutMs)).allowed, "the cache was not told").toBe(false);
  });

  it("of a key that holds a value of another type fails alone", async () => {
    const store = redisStore(redis, { prefix: "foreign" });
    const key = freshKey();
    await store.consume(limit, key, 1, timeoutMs);
    const name = (await redis.keys(`foreign:{${key}}*`))[0] as string;
    await redis.del(name);
    await redis.rpush(name, "1");
    const [foreign, other] = await Promise.allSettled([
      store.keyState(limit, key, timeoutMs),
      store.keyState(limit, freshKey(), timeoutMs),
    ]);
    expect([foreign, other]).toMatchObject([{ reason: { code: "FLOODGATE_FOREIGN_VALUE" } }, { value: { state: { kind: "empty" } } }]);
  });
});

async function serverMs(): Promise<number> {
  const [seconds, micros] = (await redis.time()).map(Number) as [number, number];
  return seconds * 1000 + Math.floor(micros / 1000);
}
