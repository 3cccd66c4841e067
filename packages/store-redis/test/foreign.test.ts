import { createLimiter, type FloodgateEvent, fixedWindow } from "@floodgate/core";
import { asCharge, type Check, createLimit, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { redisStore } from "../src/index.js";
import { everyState } from "./policies.js";
import { useRedis } from "./use-redis.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;

let redis: Redis;
useRedis((_server, client) => {
  redis = client;
});

const startMs = 1_789_948_800_000;
let nowMs = startMs;
const clock = (): number => nowMs;
const storeOf = () => redisStore(redis, { clock });

let keys = 0;
const freshKey = (): string => `key-${keys++}`;

/** The size of the state's birth, which precedes the layout byte. */
const layoutAt = 7;

/** The Redis key of a request key that was charged one unit. */
async function chargedName(limit: Limit, key: string): Promise<string> {
  await storeOf().consume(limit, key, 1, timeoutMs);
  return (await redis.keys(`*{${key}}*`))[0] as string;
}

describe.each(everyState)("a key of $stateKind that holds", (policy) => {
  const limit = createLimit("api", policy);

  it("a foreign string is ignored and overwritten", async () => {
    const key = freshKey();
    const name = await chargedName(limit, key);
    const state = (await redis.getBuffer(name)) as Buffer;
    const foreign = fc
      .oneof(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom("", "0", "10", "null", '{"count":1}').map((text) => Buffer.from(text)),
        // A value of another length, and one with another layout byte.
        fc.nat(state.length - 1).map((length) => state.subarray(0, length)),
        fc.integer({ min: 1, max: 13 }).map((length) => Buffer.concat([state, Buffer.alloc(length, 1)])),
        fc.nat(255).map((layout) => Buffer.from([...state.subarray(0, layoutAt), layout, ...state.subarray(layoutAt + 1)])),
      )
      .filter((bytes) => bytes[layoutAt] !== state[layoutAt] || (bytes.length - state.length) % 14 !== 0);
    await fc.assert(
      fc.asyncProperty(foreign, async (bytes) => {
        await redis.set(name, Buffer.from(bytes), "EX", 1000);
        const store = storeOf();
        expect(await store.peek(limit, key, timeoutMs)).toMatchObject({ remaining: 10, resetAfterMs: 0 });
        expect(await store.consume(limit, key, 3, timeoutMs)).toMatchObject({ allowed: true, remaining: 7 });
        expect(await store.consume(limit, key, 7, timeoutMs)).toMatchObject({ allowed: true, remaining: 0 });
      }),
      runs(60),
    );
  });

  it("a corrupted state fails no request and locks no key for good", async () => {
    const bytes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(bytes, async (edits) => {
        nowMs = startMs;
        const key = freshKey();
        const name = await chargedName(limit, key);
        const state = (await redis.getBuffer(name)) as Buffer;
        for (const [at, byte] of edits) state[at % state.length === layoutAt ? layoutAt - 1 : at % state.length] = byte;
        await redis.set(name, state, "EX", 1000);
        const store = storeOf();
        const decision = await store.consume(limit, key, 1, timeoutMs);
        await store.settle(limit, key, asCharge(decision), 0, timeoutMs);
        // The corruption may read as a debt: then the decision says how long it lasts.
        const { resetAfterMs } = await store.peek(limit, key, timeoutMs);
        nowMs += Math.max(2 * policy.spanMs, resetAfterMs) + 1;
        expect((await store.consume(limit, key, 1, timeoutMs)).allowed).toBe(true);
        await store.reset(limit, key, timeoutMs);
        expect(await store.peek(limit, key, timeoutMs)).toMatchObject({ remaining: 10, resetAfterMs: 0 });
      }),
      runs(40),
    );
  });
});

describe.each<[string, (name: string) => Promise<unknown>]>([
  ["list", (name) => redis.rpush(name, "1")],
  ["hash", (name) => redis.hset(name, "count", 1)],
  ["set", (name) => redis.sadd(name, "1")],
  ["sorted set", (name) => redis.zadd(name, 1, "1")],
  ["stream", (name) => redis.xadd(name, "*", "count", 1)],
])("a key that holds a %s", (_, put) => {
  const foreign = { code: "FLOODGATE_FOREIGN_VALUE", message: expect.stringMatching(/holds a value of another type.*reset/) };

  it.each(everyState)("fails alone, stays unchanged, and is fixed by a reset: $stateKind", async (policy) => {
    const limit = createLimit("api", policy);
    const neighbour = createLimit("neighbour", fixedWindow({ limit: 10, window: "365d" }));
    const store = storeOf();
    const [key, sound] = [freshKey(), freshKey()];
    const decision = await store.consume(limit, key, 1, timeoutMs);
    const [name] = (await redis.keys(`*{${key}}*`)) as [string];
    await redis.del(name);
    await put(name);
    const before = await redis.dumpBuffer(name);
    const both: Check[] = [
      { limit: neighbour, key, cost: 1 },
      { limit, key, cost: 1 },
    ];
    const answers = await Promise.allSettled<unknown>([
      store.consume(limit, sound, 1, timeoutMs),
      store.consume(limit, key, 1, timeoutMs),
      store.consume(limit, key, 2, timeoutMs),
      store.peek(limit, key, timeoutMs),
      store.consumeAll(both, timeoutMs),
      store.consumeAll([...both].reverse(), timeoutMs),
      store.consume(limit, sound, 2, timeoutMs),
      store.peek(neighbour, key, timeoutMs),
    ]);
    const failed = { status: "rejected", reason: foreign };
    const decided = (remaining: number) => ({ status: "fulfilled", value: { allowed: true, remaining } });
    expect(answers).toMatchObject([decided(9), failed, failed, failed, failed, failed, decided(7), decided(10)]);
    await expect(store.settle(limit, key, asCharge(decision), decision.cost + 1, timeoutMs)).rejects.toMatchObject(foreign);
    expect(await redis.dumpBuffer(name)).toEqual(before);

    await store.reset(limit, key, timeoutMs);
    expect(await store.consume(limit, key, 3, timeoutMs)).toMatchObject({ allowed: true, remaining: 7 });
    expect(await redis.type(name)).toBe("string");
  });

  it("affects only its own requests: a limiter decides them by onStoreError and reports why", async () => {
    const events: FloodgateEvent[] = [];
    const limiter = createLimiter({
      name: "api",
      policy: fixedWindow({ limit: 1, window: "1h" }),
      store: storeOf(),
      timeoutMs,
      onStoreError: "deny",
      onEvent: (event) => void events.push(event),
    });
    const key = freshKey();
    await limiter.consume(key);
    const [name] = (await redis.keys(`*{${key}}*`)) as [string];
    await redis.del(name);
    await put(name);
    for (let i = 0; i < 10; i++) expect(await limiter.consume(key)).toMatchObject({ allowed: false, degraded: true });
    expect(await limiter.consume(freshKey())).toMatchObject({ allowed: true, degraded: false });
    expect(events.filter(({ type }) => type === "store-error")).toMatchObject(Array(10).fill({ error: foreign }));
    await limiter.reset(key);
    expect(await limiter.consume(key)).toMatchObject({ allowed: true, degraded: false });
  });
});

it("a request under several limits fails alone, wherever it stands among others and whichever key of it holds another type", async () => {
  const limits = everyState.map((policy, i) => createLimit(`several-${i}`, policy));
  const suffixes = await Promise.all(limits.map(async (limit) => (await chargedName(limit, freshKey())).split("}")[1] as string));
  /** Requests, each with the place of its key of another type, if any. */
  const requests = fc.array(fc.tuple(fc.integer({ min: 2, max: limits.length }), fc.option(fc.nat())), { minLength: 2, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(requests, async (all) => {
      const store = storeOf();
      const asked = all.map(async ([count, broken]) => {
        const key = freshKey();
        if (broken !== null) await redis.rpush(`floodgate:{${key}}${suffixes[broken % count]}`, "1");
        return limits.slice(0, count).map((limit): Check => ({ limit, key, cost: 1 }));
      });
      const decided = (await Promise.all(asked)).map((checks) => store.consumeAll(checks, timeoutMs));
      const codes = (await Promise.allSettled(decided)).map((answer) => (answer.status === "rejected" ? answer.reason.code : undefined));
      expect(codes).toEqual(all.map(([, broken]) => (broken === null ? undefined : "FLOODGATE_FOREIGN_VALUE")));
    }),
    runs(60),
  );
});
