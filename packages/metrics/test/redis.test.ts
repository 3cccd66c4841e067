import { createLimiter, fixedWindow } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Distribution, startExporters } from "./exporters.js";

/** Generous, for machines that run other tests at the same time. */
const timeoutMs = 20_000;

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
});
afterAll(async () => {
  redis?.disconnect();
  await server?.stop();
});

it("round trips to Redis, their decisions, and rejections without one are measured", async () => {
  const store = redisStore(redis, { denyCache: { maxAgeMs: timeoutMs } });
  const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 3, window: "365d" }), store, timeoutMs });
  // The store then knows the server's clock, and the server both scripts: that of one decision, and that of everything else.
  await limiter.consume("first");
  await limiter.peek("first");
  const exporters = startExporters();
  await Promise.all(Array.from({ length: 5 }, () => limiter.consume("hot")));
  expect((await limiter.consume("hot")).allowed).toBe(false);
  const figures = await exporters.openTelemetry();
  expect(await exporters.prometheus()).toEqual(figures);
  expect(figures.requests).toEqual({ "api allowed": 3, "api limited": 3 });
  expect(figures.denyCacheHits).toEqual({ api: 1 });
  expect(figures.breakers).toEqual({ closed: 1 });
  const trips = figures.roundTripDecisions?.[""] as Distribution;
  expect(trips.sum).toBe(5);
  expect(figures.roundTripDuration).toMatchObject({ ok: { count: trips.count } });
  limiter.close();
  await exporters.stop();
});
