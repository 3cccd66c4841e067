import {
  consumeAll,
  createLimiter,
  type Decision,
  type FloodgateEvent,
  fixedWindow,
  type Limiter,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import type { FailureOptions } from "@floodgate/core/store";
import { memoryStore } from "@floodgate/store-memory";
import { availableServers, type RedisServer, startRedis } from "@floodgate/test-servers";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { redisStore } from "../src/index.js";
import { libraries } from "./libraries.js";

// Bugs of other rate limiters with Redis, by their number in the table of defects.

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const patience: FailureOptions = { timeoutMs: 20_000 };
const soon = { interval: 5, timeout: 20_000 };

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  await server.command("FLUSHALL");
  redis = new Redis(server.port);
  redis.on("error", () => undefined);
});
afterEach(() => redis?.disconnect());
afterAll(() => server?.stop());

const limiter = (policy: Policy, name = "api", store = redisStore(redis)): Limiter<"async"> =>
  createLimiter({ name, policy, store, ...patience });
const yearly = (limit: number): Policy => fixedWindow({ limit, window: "365d" });
const names = async (): Promise<string[]> => (await server.command("KEYS", "*")) as string[];

test("1: a store created while Redis is down works when Redis is up", async () => {
  const late = await startRedis();
  await late.kill();
  const client = new Redis(late.port, { retryStrategy: () => 20 });
  client.on("error", () => undefined);
  const api = createLimiter({ name: "api", policy: yearly(5), store: redisStore(client), timeoutMs: 30 });
  expect(await api.consume("k")).toMatchObject({ allowed: true, degraded: true });
  await late.restart();
  await expect.poll(() => api.peek("k"), soon).toMatchObject({ degraded: false, remaining: 5 });
  client.disconnect();
  await late.stop();
});

test("2: a late refund creates no key", async () => {
  const api = limiter(fixedWindow({ limit: 5, window: "50ms" }));
  const decision = await api.consume("k");
  await expect.poll(names, soon).toEqual([]);
  expect([await api.refund("k", decision), await names()]).toEqual([0, []]);
});

test("3: limits on one Redis share a count only under one name, and then need the same policy", async () => {
  const store = redisStore(redis);
  const [minute, hour] = [limiter(slidingWindowLog({ limit: 1, window: "1m" }), "minute", store), limiter(yearly(5), "hour", store)];
  for (const api of [minute, hour]) expect((await api.consume("k")).allowed).toBe(true);
  expect([(await minute.peek("k")).remaining, (await hour.peek("k")).remaining]).toEqual([0, 4]);
  expect(() => limiter(yearly(6), "hour", store)).toThrow(expect.objectContaining({ code: "FLOODGATE_NAME_TAKEN" }));
});

test("4 and 15: no request waits longer than the deadline for a silent or stopped Redis", async () => {
  const silent = await startRedis();
  const client = new Redis(silent.port);
  client.on("error", () => undefined);
  const api = createLimiter({ name: "api", policy: yearly(5), store: redisStore(client), timeoutMs: 200 });
  await expect.poll(() => api.peek("k"), soon).toMatchObject({ degraded: false });
  silent.pause();
  expect(await api.consume("k")).toMatchObject({ allowed: true, degraded: true });
  silent.resume();
  await silent.kill();
  expect(await api.consume("k")).toMatchObject({ allowed: true, degraded: true });
  client.disconnect();
  await silent.stop();
});

test("8: windows with fractions of a second are exact to the millisecond", async () => {
  for (const [i, windowMs] of [500, 1900].entries()) {
    const decision = await limiter(slidingWindowLog({ limit: 5, window: `${BigInt(windowMs)}ms` }), `limit-${i}`).consume("k");
    expect(decision.resetAfterMs).toBe(windowMs);
    const leftMs = (await server.command("PTTL", (await names()).find((name) => name.includes(`limit-${i}`)) ?? "none")) as number;
    expect(leftMs).not.toBe(-1);
    expect(leftMs).toBeLessThanOrEqual(windowMs);
  }
});

test("6 and 9: a rejection by one limit charges no other, and an error is not a rejection", async () => {
  const events: FloodgateEvent[] = [];
  const store = redisStore(redis);
  const onEvent = (event: FloodgateEvent): void => void events.push(event);
  const [wide, narrow] = [yearly(10), yearly(2)].map((policy, i) =>
    createLimiter({ name: `limit-${i}`, policy, store, ...patience, onEvent }),
  ) as [Limiter<"async">, Limiter<"async">];
  const both = () => consumeAll([wide, narrow].map((each) => ({ limiter: each, key: "k" })));
  const allowed: boolean[] = [];
  for (let i = 0; i < 6; i++) allowed.push((await both()).allowed);
  expect(allowed).toEqual([true, true, false, false, false, false]);
  expect((await wide.peek("k")).remaining).toBe(8);

  await wide.reset("k");
  await narrow.reset("k");
  await server.command("LPUSH", "floodgate:{k}:limit-1:fw-31536000000", "foreign");
  expect(await both()).toMatchObject({ allowed: true, decision: { degraded: true } });
  expect(events.filter(({ type }) => type === "store-error")).toMatchObject([{ error: expect.any(Error) }]);
  expect((await wide.peek("k")).remaining).toBe(10);
});

test.each([
  yearly(10),
  slidingWindowCounter({ limit: 10, window: "365d" }),
  slidingWindowLog({ limit: 10, window: "365d" }),
  tokenBucket({ capacity: 10, refill: 1, every: "365d" }),
])("10: a rejected request burns nothing of what is left: $algorithm", async (policy) => {
  const api = limiter(policy);
  await api.consume("k", { cost: 8 });
  expect(await api.consume("k", { cost: 5 })).toMatchObject({ allowed: false, remaining: 2 });
  expect((await api.consume("k")).allowed).toBe(true);
  expect((await api.consume("k")).allowed).toBe(true);
  expect((await api.consume("k")).allowed).toBe(false);
});

test.each(Object.entries(libraries))("11: %s is detected automatically", async (name, library) => {
  const connected = await library.connect(server.port);
  const api = createLimiter({ name, policy: yearly(5), store: redisStore(connected.client), ...patience });
  expect(await api.consume("k")).toMatchObject({ remaining: 4, degraded: false });
  await connected.close();
});

test("12: limiters with the same name and policy share a count everywhere", async () => {
  const store = redisStore(redis);
  const routes = [limiter(yearly(2), "shared", store), limiter(yearly(2), "shared", store), limiter(yearly(2), "shared")];
  const allowed: boolean[] = [];
  for (const route of routes) allowed.push((await route.consume("k")).allowed);
  expect(allowed).toEqual([true, true, false]);
});

test("13: a client that keeps sending is allowed again at the same moment in memory and in Redis", async () => {
  let nowMs = 1_789_948_800_000;
  const clock = (): number => nowMs;
  for (const policy of [
    slidingWindowLog({ limit: 3, window: "1s", countRejected: true }),
    slidingWindowCounter({ limit: 3, window: "1s" }),
  ]) {
    const [here, there] = [
      createLimiter({ name: policy.algorithm, policy, store: memoryStore({ clock }) }),
      limiter(policy, policy.algorithm, redisStore(redis, { clock })),
    ];
    for (let i = 0; i < 60; i++) {
      nowMs += i < 40 ? 50 : 400;
      expect(await there.consume("k")).toEqual(here.consume("k"));
    }
  }
});

describe("20: the script is portable Lua, without flags", async () => {
  test.each(availableServers())("on $name", async ({ binary }) => {
    const other = await startRedis({ binary });
    const client = new Redis(other.port);
    const api = createLimiter({ name: "api", policy: yearly(1), store: redisStore(client), ...patience });
    const decisions: Decision[] = [await api.consume("k"), await api.consume("k")];
    expect(decisions).toMatchObject([
      { allowed: true, degraded: false },
      { allowed: false, degraded: false },
    ]);
    client.disconnect();
    await other.stop();
  });
});

test("21: every key expires, even if its requests are rejected in this process", async () => {
  const api = limiter(yearly(2));
  for (let i = 0; i < 10; i++) await api.consume("k");
  for (const name of await names()) expect(await server.command("PTTL", name)).toBeGreaterThan(0);
  // The rejections are cached, so there may be a key with the last announcement of a change.
  expect((await names()).filter((name) => name !== "floodgate:changes")).toHaveLength(1);
});

test("22: a cached rejection applies only to its cost and above", async () => {
  const api = limiter(tokenBucket({ capacity: 10, refill: 1, every: "365d" }));
  await api.consume("k", { cost: 7 });
  expect((await api.consume("k", { cost: 5 })).allowed).toBe(false);
  expect((await api.consume("k", { cost: 1 })).allowed).toBe(true);
  expect((await api.consume("k", { cost: 3 })).allowed).toBe(false);
  expect((await api.consume("k", { cost: 2 })).allowed).toBe(true);
});

test("23: a reset clears exactly one key", async () => {
  const api = limiter(yearly(1));
  const users = ["user", "user:2", "user2", "*", "use?"];
  for (const user of users) await api.consume(user);
  for (const [i, user] of ["*", "user", "use?"].entries()) {
    await api.reset(user);
    expect(await names()).toHaveLength(users.length - 1 - i);
  }
  expect((await Promise.all(users.map((user) => api.peek(user)))).map(({ allowed }) => allowed)).toEqual([true, false, false, true, true]);
});

test.each(["allow", "deny"] as const)(
  "24: onStoreError applies to a slow Redis and to one that returns errors: %s",
  async (onStoreError) => {
    const events: FloodgateEvent[] = [];
    const store = redisStore(redis);
    const onEvent = (event: FloodgateEvent): void => void events.push(event);
    const [api, patient] = [{ timeoutMs: 500 }, patience].map((options) =>
      createLimiter({ name: "api", policy: yearly(5), store, onStoreError, onEvent, ...options }),
    ) as [Limiter<"async">, Limiter<"async">];
    expect(await patient.peek("k")).toMatchObject({ degraded: false });
    server.pause();
    const slow = await api.consume("k").finally(() => server.resume());
    await server.command("ACL", "SETUSER", "default", "-evalsha");
    const wrong = await patient.consume("k");
    await server.command("ACL", "SETUSER", "default", "+evalsha");
    for (const decision of [slow, wrong]) expect(decision).toMatchObject({ allowed: onStoreError === "allow", degraded: true });
    const faults = events.flatMap((event) => (event.type === "store-error" ? [(event.error as { code?: string }).code] : []));
    expect(faults).toEqual(["FLOODGATE_STORE_TIMEOUT", "FLOODGATE_STORE_FAULT"]);
  },
);
