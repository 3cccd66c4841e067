import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createLimiter, type Decision, fixedWindow, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { asCharge, createLimit, type Limit } from "@floodgate/core/store";
import type { RedisServer } from "@floodgate/test-servers";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { allRuns, runs } from "../../../test/runs.js";
import { type RedisStoreOptions, redisStore } from "../src/index.js";
import { runsDuring } from "./commands.js";
import { limitOf, type PatientStore, patienceMs, patientStore, yearly } from "./patient-store.js";
import { policies, tenAnHour } from "./policies.js";
import { anotherProcess, useRedis } from "./use-redis.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let server: RedisServer;
let redis: Redis;
useRedis((started, client) => {
  server = started;
  redis = client;
});

let nowMs = 1_789_948_800_000;
const clock = (): number => nowMs;

const storeOf = (options?: RedisStoreOptions, client: Redis = redis) => patientStore(client, options);

/** A slot may be given back at any moment, so a rejection by concurrency is never cached. */
const cached = tenAnHour.filter(({ algorithm }) => algorithm !== "concurrency");

it("A key is never rejected after a refund was answered, in whatever order the replies of the server are read", async () => {
  const client = anotherProcess(redis);
  const evalsha = client.evalsha.bind(client) as (...args: unknown[]) => Promise<unknown>;
  let delaysMs: number[] = [];
  client.evalsha = (async (...args: unknown[]) => {
    const delayMs = delaysMs.pop() ?? 0;
    const reply = await evalsha(...args);
    if (delayMs > 0) await sleep(delayMs);
    return reply;
  }) as never;
  const store = redisStore(client, { denyCache: { maxAgeMs: patienceMs } });
  const traffic = fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }), async (delays) => {
    const limit = limitOf(yearly(1));
    const consume = async (): Promise<Decision> => store.consume(limit, "k", 1, patienceMs);
    const refund = (decision: Decision): Promise<unknown> => store.settle(limit, "k", asCharge(decision), 0, patienceMs);
    const first = await consume();
    delaysMs = delays;
    const rejected = consume();
    // In another round than the request before.
    await new Promise(setImmediate);
    await refund(first);
    if ((await rejected).allowed) await refund(await rejected);
    expect((await consume()).allowed).toBe(true);
  });
  await fc.assert(traffic, runs(200));
});

describe("a blocked key", () => {
  const one = (client = redis): ReturnType<typeof redisStore> => redisStore(client, { denyCache: { maxAgeMs: patienceMs } });
  const consume = (store: ReturnType<typeof redisStore>, limit: Limit) => store.consume(limit, "k", 1, patienceMs);

  it.each(cached)("costs one round trip: $stateKind", async (policy) => {
    const store = one();
    const limit = limitOf(policy);
    await store.block(limit.name, "k", 3_600_000, "block", patienceMs);
    const first = await consume(store, limit);
    let answers: Decision[] = [];
    const runs = await runsDuring(server, async () => {
      answers = await Promise.all(Array.from({ length: 100 }, () => consume(store, limit)));
    });
    expect(runs).toBe(0);
    for (const answer of [first, ...answers]) {
      expect(answer).toMatchObject({ allowed: false, remaining: 0 });
      expect(answer.retryAfterMs).toBeGreaterThan(3_500_000);
      expect(answer.retryAfterMs).toBeLessThanOrEqual(3_600_000);
    }
  });

  it("passes again at once where it is unblocked, and is turned away at once if another process blocks it", async () => {
    const [store, other] = [one(), one(anotherProcess(redis))];
    const limit = limitOf(yearly(1000));
    for (const kind of ["block", "ban"] as const) {
      expect((await consume(store, limit)).allowed).toBe(true);
      await other.block(limit.name, "k", 3_600_000, kind, patienceMs);
      expect((await consume(store, limit)).allowed).toBe(false);
      if (kind === "block") await store.unblock(limit.name, "k", patienceMs);
      else await store.reset(limit, "k", patienceMs);
      expect((await consume(store, limit)).allowed).toBe(true);
    }
  });

  it.each(["reset", "unblock"] as const)("passes again at once under all policies of the name, where a %s lifts its ban", async (lift) => {
    const store = one();
    const limit = limitOf(yearly(10));
    const plans = [limit, ...cached.map((policy) => createLimit(limit.name, policy))];
    await store.block(limit.name, "k", 3_600_000, "ban", patienceMs);
    for (const plan of plans) expect((await consume(store, plan)).allowed).toBe(false);
    await (lift === "reset" ? store.reset(limit, "k", patienceMs) : store.unblock(limit.name, "k", patienceMs));
    for (const plan of plans) expect((await consume(store, plan)).allowed).toBe(true);
  });
});

describe("a rejected key", () => {
  it.each(cached)("is rejected again without a round trip: $stateKind", async (policy) => {
    const store = await storeOf();
    const limit = limitOf(policy);
    await store.consume(limit, "k", 10);
    const first = await store.consume(limit, "k");
    let answers: Decision[] = [];
    const runs = await runsDuring(server, async () => {
      answers = await Promise.all(Array.from({ length: 100 }, () => store.consume(limit, "k")));
    });
    expect(runs).toBe(0);
    for (const { allowed, retryAfterMs } of [first, ...answers]) {
      expect(allowed).toBe(false);
      expect(retryAfterMs).toBeGreaterThan(0);
      expect(retryAfterMs).toBeLessThanOrEqual(first.retryAfterMs);
    }
  });

  it("gets the same decision as from Redis: allowed, limit and retryAfterMs", async () => {
    const many = fc
      .record({ limit: fc.integer({ min: 1, max: 40 }), window: fc.constantFrom("60ms" as const, "1200ms" as const, "1m" as const) })
      .map(slidingWindowLog);
    const few = fc.integer({ min: 1, max: 3 });
    const cost = fc.oneof(few, fc.integer({ min: 1, max: 42 }));
    const block = fc.record({ blockMs: fc.integer({ min: 1, max: 300 }) });
    const step = fc.oneof({ weight: 12, arbitrary: cost }, { weight: 1, arbitrary: block });
    const asks = fc.array(fc.tuple(fc.nat(80), step), { minLength: 10, maxLength: 60 });
    let known = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof(policies, many), asks, async (policy, times) => {
        const limit = limitOf(policy);
        const cached = await storeOf({ clock, denyCache: { maxAgeMs: 3_600_000 } });
        const plain = await storeOf({ clock, denyCache: false });
        for (const [afterMs, step] of times) {
          nowMs += afterMs;
          if (typeof step === "object") await cached.block(limit, "k", step.blockMs);
          const cost = typeof step === "object" ? 1 : step;
          let answer: Decision | undefined;
          const runs = await runsDuring(server, async () => {
            answer = await cached.consume(limit, "k", cost);
          });
          if (runs > 0) continue;
          known++;
          const { allowed, limit: quota, retryAfterMs } = await plain.consume(limit, "k", cost);
          expect(answer).toMatchObject({ allowed, limit: quota, retryAfterMs });
          expect(allowed).toBe(false);
        }
      }),
      runs(60),
    );
    expect(known).toBeGreaterThan(allRuns ? 100 : 20);
  });

  it("gets exact waits for any cost from a log that is too long to be cached whole", async () => {
    const limit = limitOf(slidingWindowLog({ limit: 30, window: "1m" }));
    const cached = await storeOf({ clock });
    const plain = await storeOf({ clock, denyCache: false });
    for (let i = 0; i < 30; i++) {
      nowMs++;
      await plain.consume(limit, "k");
    }
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 31 }), async (cost) => {
        const [answer, { retryAfterMs }] = [await cached.consume(limit, "k", cost), await plain.consume(limit, "k", cost)];
        expect(answer).toMatchObject({ allowed: false, retryAfterMs });
      }),
    );
    expect(await runsDuring(server, () => Promise.all([1, 2, 3].map(() => cached.consume(limit, "k", 31))))).toBe(0);
  });

  it("asks Redis for a cheaper request that may pass, and not for a more expensive one", async () => {
    const store = await storeOf();
    const limit = limitOf(tokenBucket({ capacity: 10, refill: 1, every: "1h" }));
    await store.consume(limit, "k", 7);
    expect((await store.consume(limit, "k", 5)).allowed).toBe(false);
    expect(await runsDuring(server, async () => expect((await store.consume(limit, "k", 4)).allowed).toBe(false))).toBe(0);
    expect(await runsDuring(server, async () => expect((await store.consume(limit, "k", 3)).allowed).toBe(true))).toBe(1);
  });

  it("rejects a cost above the quota without a round trip", async () => {
    const store = await storeOf();
    const limit = limitOf(yearly(10));
    await store.consume(limit, "k", 11);
    let answer: Decision | undefined;
    expect(
      await runsDuring(server, async () => {
        answer = await store.consume(limit, "k", 12);
      }),
    ).toBe(0);
    expect(answer).toMatchObject({ allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, limit: 10 });
    expect((await store.consume(limit, "k", 10)).allowed).toBe(true);
  });

  it("is evicted by newer keys beyond maxKeys", async () => {
    const store = await storeOf({ denyCache: { maxKeys: 3, maxAgeMs: patienceMs } });
    const limit = limitOf(yearly(1));
    const keys = ["a", "b", "c", "d", "e"];
    for (const key of keys) for (let i = 0; i < 2; i++) await store.consume(limit, key);
    const trips: number[] = [];
    for (const key of [...keys].reverse()) trips.push(await runsDuring(server, () => store.consume(limit, key)));
    expect(trips).toEqual([0, 0, 0, 1, 1]);
  });

  it("shares maxKeys with all limits of its store", async () => {
    const store = await storeOf({ denyCache: { maxKeys: 3, maxAgeMs: patienceMs } });
    const limits = [limitOf(yearly(1)), limitOf(yearly(1)), limitOf(yearly(1))] as const;
    const denied = [
      [limits[0], "a"],
      [limits[1], "a"],
      [limits[0], "b"],
      [limits[2], "c"],
    ] as const;
    for (const [limit, key] of denied) for (let i = 0; i < 2; i++) await store.consume(limit, key);
    const trips: number[] = [];
    for (const [limit, key] of [...denied].reverse()) trips.push(await runsDuring(server, () => store.consume(limit, key)));
    // Both states of the oldest key have gone.
    expect(trips).toEqual([0, 0, 1, 1]);
  });

  it("is cached beside thousands of others", async () => {
    const store = await storeOf({ denyCache: { maxAgeMs: 60_000 } });
    const limit = limitOf(yearly(1));
    const all = Array.from({ length: allRuns ? 20_000 : 5000 }, (_, i) => `client-${i}`);
    for (let i = 0; i < 2; i++) await Promise.all(all.map((key) => store.consume(limit, key)));
    const runs = await runsDuring(server, async () => {
      const again = await Promise.all(all.map((key) => store.consume(limit, key)));
      expect(again.every(({ allowed }) => !allowed)).toBe(true);
    });
    expect(runs).toBe(0);
  });

  it("always asks Redis with countRejected, or with the cache off", async () => {
    const countsRejected = limitOf(slidingWindowLog({ limit: 1, window: "1h", countRejected: true }));
    for (const [store, limit] of [
      [await storeOf(), countsRejected],
      [await storeOf({ denyCache: false }), limitOf(yearly(1))],
    ] as const) {
      await store.consume(limit, "k");
      for (let i = 0; i < 3; i++) expect(await runsDuring(server, () => store.consume(limit, "k"))).toBe(1);
    }
  });
});

describe("a cached rejection ends", () => {
  it.each<[string, (store: PatientStore, limit: Limit, charge: Decision) => Promise<unknown>]>([
    ["with a reset", (store, limit) => store.reset(limit, "k")],
    ["with a settlement", (store, limit, charge) => store.settle(limit, "k", charge, 0)],
  ])("%s, as soon as that is sent", async (_, end) => {
    const store = await storeOf();
    const limit = limitOf(yearly(1));
    const charge = await store.consume(limit, "k");
    expect((await store.consume(limit, "k")).allowed).toBe(false);
    const [, passes] = [end(store, limit, charge), store.consume(limit, "k")];
    expect((await passes).allowed).toBe(true);
    // A rejection that was decided before the reset, but arrives during it, is not cached.
    const [rejected] = [store.consume(limit, "k"), end(store, limit, await passes)];
    expect((await rejected).allowed).toBe(false);
    expect((await store.consume(limit, "k")).allowed).toBe(true);
  });

  it("for a plan with a higher limit on the same state", async () => {
    const store = await storeOf();
    const [one, two] = [createLimit("plan", yearly(1)), createLimit("plan", yearly(2))];
    await store.consume(one, "k");
    await store.consume(one, "k");
    expect((await store.consume(two, "k")).allowed).toBe(true);
    await store.consume(two, "k");
    expect(await runsDuring(server, async () => expect((await store.consume(one, "k")).allowed).toBe(false))).toBe(0);
  });

  it("within maxAgeMs after another process resets the key", async () => {
    const [store, other] = [await storeOf({ clock, denyCache: { maxAgeMs: 500 } }), await storeOf({ clock }, anotherProcess(redis))];
    const limit = limitOf(yearly(1));
    await store.consume(limit, "k");
    await store.consume(limit, "k");
    await other.reset(limit, "k");
    nowMs += 500;
    expect((await store.consume(limit, "k")).allowed).toBe(false);
    nowMs += 1;
    expect((await store.consume(limit, "k")).allowed).toBe(true);
  });

  it("within maxAgeMs by the server's clock too", async () => {
    const [store, other] = [await storeOf({ denyCache: { maxAgeMs: 50 } }), await storeOf()];
    const limit = limitOf(yearly(1));
    await store.consume(limit, "k");
    await store.consume(limit, "k");
    await other.reset(limit, "k");
    await expect.poll(async () => (await store.consume(limit, "k")).allowed, { interval: 5, timeout: patienceMs }).toBe(true);
  });

  it("when an injected clock steps back", async () => {
    const store = await storeOf({ clock });
    const limit = limitOf(yearly(1));
    await store.consume(limit, "k");
    await store.consume(limit, "k");
    nowMs -= 10;
    expect(await runsDuring(server, () => store.consume(limit, "k"))).toBe(1);
  });
});

describe("the deny cache frees memory", () => {
  setFlagsFromString("--expose_gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const lasting = limitOf(yearly(1));
  let names = 0;

  it.each<[string, RedisStoreOptions, () => Limit]>([
    ["of the oldest states beyond maxKeys, as rules come and go", { denyCache: { maxKeys: 100 } }, () => limitOf(yearly(1))],
    [
      "of states older than a minute, as keys come and go",
      { clock, denyCache: { maxAgeMs: 1000 } },
      () => {
        nowMs += 60_001;
        return lasting;
      },
    ],
    ["of states older than maxAgeMs below a second, by the server's clock", { denyCache: { maxAgeMs: 1 } }, () => lasting],
  ])("%s", async (_, options, next) => {
    const store = await storeOf(options);
    const heapAfter = async (turns: number): Promise<number> => {
      for (let i = 0; i < turns; i++) {
        const limit = next();
        const denied = Array.from({ length: 200 }, () => `fleeting-${names++}`);
        for (let visit = 0; visit < 2; visit++) await Promise.all(denied.map((key) => store.consume(limit, key)));
      }
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = await heapAfter(10);
    expect(((await heapAfter(35)) - before) / (35 * 200)).toBeLessThan(100);
  });
});

it("a cached rejection is answered at once by the store, and by promise by the limiter", async () => {
  const store = redisStore(redis, { clock });
  const limiter = createLimiter({ name: "at-once", policy: fixedWindow({ limit: 1, window: "365d" }), store, timeoutMs: patienceMs });
  await limiter.consume("k");
  await limiter.consume("k");
  expect(store.consume(limiter.limit, "k", 1, patienceMs)).toMatchObject({ allowed: false });
  expect(store.consumeAll([{ limit: limiter.limit, key: "k", cost: 1 }], patienceMs)).toMatchObject([{ allowed: false }]);
  const again = limiter.consume("k");
  expect(again).toBeInstanceOf(Promise);
  expect(await again).toMatchObject({ allowed: false });
  limiter.close();
});
