import { fixedWindow } from "@floodgate/core";
import { createLimit, heldPolicy } from "@floodgate/core/store";
import type { Redis } from "ioredis";
import { expect, it } from "vitest";
import { redisStore } from "../src/index.js";
import { useRedis } from "./use-redis.js";

let redis: Redis;
useRedis((_server, client) => {
  redis = client;
});

it("a key holds the units of ten thousand requests at once, and of the next one when the first of them have come back", async () => {
  let nowMs = 1_789_948_800_000;
  const store = redisStore(redis, { clock: () => nowMs, denyCache: false, prefix: "many" });
  const limit = createLimit("api", heldPolicy("test", fixedWindow({ limit: 20_000, window: "365d" }), 60_000));
  const ask = (holdMs: number) => store.consume({ ...limit, holdMs }, "key", 1, 60_000);
  expect((await ask(50_001)).allowed).toBe(true);
  const [list = ""] = await redis.keys("many*:holds");
  const value = (await redis.getBuffer(list)) as Buffer;
  // Behind 8 bytes stand the sum of the units, and of each request the end and the units, in 7 bytes each.
  const entries = Array.from({ length: 9998 }, (_, i) => {
    const entry = Buffer.from(value.subarray(15));
    entry.writeUIntBE(nowMs + 50_002 + i, 1, 6);
    return entry;
  });
  value.writeUIntBE(9999, 9, 6);
  await redis.set(list, Buffer.concat([value, ...entries]));
  expect(await ask(60_000)).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 50_001 });
  expect(await ask(59_000)).toMatchObject({ allowed: false, remaining: 0, retryAfterMs: 50_001 });
  expect((await ask(0)).allowed).toBe(true);
  nowMs += 50_001;
  expect([(await ask(20_000)).allowed, (await ask(30_000)).allowed]).toEqual([true, false]);
});
