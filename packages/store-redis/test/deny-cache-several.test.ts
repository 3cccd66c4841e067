import { type Decision, fixedWindow, slidingWindowLog, tokenBucket } from "@floodgate/core";
import type { Check, Limit } from "@floodgate/core/store";
import type { RedisServer } from "@floodgate/test-servers";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import type { Changes } from "../src/changes.js";
import { DenyCache } from "../src/deny-cache.js";
import type { RedisStoreOptions } from "../src/index.js";
import { runsDuring } from "./commands.js";
import { limitOf, type PatientStore, patientStore, yearly } from "./patient-store.js";
import { useRedis } from "./use-redis.js";

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

const storeOf = (options?: RedisStoreOptions) => patientStore(redis, options);

describe("the deny cache, for a request under several limits,", () => {
  it("rejects without a round trip if one rejection is certain, and shows the others' last known numbers", async () => {
    const [store, other] = [await storeOf(), await storeOf()];
    const [narrow, wide] = [limitOf(yearly(1)), limitOf(yearly(10))];
    const checks = [narrow, wide].map((limit): Check => ({ limit, key: "k", cost: 1 }));
    await store.consumeAll(checks);
    expect(await runsDuring(server, () => store.consumeAll(checks))).toBe(1);
    await other.consume(wide, "k", 5);
    let answers: Decision[] = [];
    const runs = await runsDuring(server, async () => {
      answers = await store.consumeAll(checks);
    });
    expect(runs).toBe(0);
    expect(answers).toMatchObject([
      { allowed: false, limit: 1 },
      { allowed: true, remaining: 9 },
    ]);
  });

  it("asks Redis again when a dry-run limit, such as a ban, may have changed", async () => {
    const store = await storeOf();
    const [limit, ban] = [limitOf(yearly(1)), limitOf(slidingWindowLog({ limit: 1, window: "1h" }))];
    const checks: Check[] = [
      { limit, key: "k", cost: 1 },
      { limit: ban, key: "k", cost: 1, dryRun: true },
    ];
    const verdicts = async () => (await store.consumeAll(checks)).map(({ allowed }) => allowed);
    expect(await verdicts()).toEqual([true, true]);
    for (let i = 0; i < 3; i++) expect(await verdicts()).toEqual([false, true]);
    await store.consume(ban, "k");
    expect(await runsDuring(server, async () => expect(await verdicts()).toEqual([false, false]))).toBe(1);
    expect(await runsDuring(server, async () => expect(await verdicts()).toEqual([false, false]))).toBe(0);
  });

  it.each([
    ["pass", async () => undefined],
    ["settle charges of", (store: PatientStore, { limit, key }: Check, charge: Decision) => store.settle(limit, key, charge, 2)],
    ["use up", (store: PatientStore, { limit, key }: Check, { remaining }: Decision) => store.consume(limit, key, Math.max(remaining, 1))],
  ])("rejects without a round trip while other requests %s another of its limits", async (_, goOn) => {
    const [cached, plain] = [
      await storeOf({ clock, denyCache: { maxAgeMs: 1000 } }),
      await storeOf({ clock, denyCache: false, prefix: "plain" }),
    ];
    const [perUser, global] = [limitOf(yearly(3)), limitOf(tokenBucket({ capacity: 1000, refill: 1000, every: "1s" }))];
    const checks = (key: string): [Check, Check] => [
      { limit: perUser, key, cost: 1 },
      { limit: global, key: "global", cost: 1 },
    ];
    for (const store of [cached, plain]) for (let i = 0; i < 4; i++) await store.consumeAll(checks("denied"));
    let runs = 0;
    for (let i = 0; i < 200; i++) {
      nowMs += 5;
      if (i % 2 === 0) {
        for (const store of [cached, plain]) {
          const [own, all] = checks(`user-${i}`);
          const [, charge] = await store.consumeAll([own, all]);
          expect(charge?.allowed).toBe(true);
          await goOn(store, all, charge as Decision);
        }
      }
      const trips = await runsDuring(server, async () => {
        const [denied, beside] = (await cached.consumeAll(checks("denied"))) as [Decision, Decision];
        const { limit, name } = beside;
        expect({ limit, name, allowed: denied.allowed }).toEqual({ limit: 1000, name: global.name, allowed: false });
        expect(denied).toEqual((await plain.consumeAll(checks("denied")))[0]);
      });
      runs += trips - 1;
    }
    expect(runs).toBeLessThanOrEqual(2);
  });

  it("waits for the limit that rejects longest, whatever this process gives back, resets and blocks in between", async () => {
    const policies = [
      slidingWindowLog({ limit: 2, window: "500ms" }),
      tokenBucket({ capacity: 3, refill: 1, every: "700ms" }),
      fixedWindow({ limit: 4, window: "2s" }),
    ];
    const limit = fc.nat(policies.length - 1);
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ cost: fc.integer({ min: 1, max: 4 }) }) },
      { weight: 2, arbitrary: fc.record({ refund: limit }) },
      { weight: 1, arbitrary: fc.record({ reset: limit }) },
      { weight: 1, arbitrary: fc.record({ block: limit, forMs: fc.integer({ min: 1, max: 3000 }) }) },
    );
    const passing = fc.record({ passMs: fc.integer({ min: 0, max: 300 }), step });
    await fc.assert(
      fc.asyncProperty(fc.array(passing, { minLength: 4, maxLength: 40 }), async (steps) => {
        const limits = policies.map(limitOf);
        const stores = await Promise.all([storeOf({ clock }), storeOf({ clock, denyCache: false, prefix: "plain" })]);
        const charged: Decision[][][] = [];
        for (const { passMs, step } of steps) {
          nowMs += passMs;
          const waits = await Promise.all(
            stores.map(async (store, i) => {
              if ("cost" in step) {
                const decisions = await store.consumeAll(limits.map((limit) => ({ limit, key: "k", ...step })));
                const rejections = decisions.filter(({ allowed }) => !allowed);
                if (rejections.length === 0) charged[i] = [...(charged[i] ?? []), decisions];
                return Math.max(0, ...rejections.map(({ retryAfterMs }) => retryAfterMs));
              }
              if ("refund" in step) {
                const charge = charged[i]?.at(-1)?.[step.refund];
                return charge && store.settle(limits[step.refund] as Limit, "k", charge, 0);
              }
              if ("reset" in step) return store.reset(limits[step.reset] as Limit, "k");
              return store.block(limits[step.block] as Limit, "k", step.forMs);
            }),
          );
          expect(waits[0]).toEqual(waits[1]);
        }
      }),
      runs(60),
    );
  });

  it("always asks Redis if one limit has countRejected", async () => {
    const store = await storeOf();
    const [narrow, counting] = [limitOf(yearly(1)), limitOf(slidingWindowLog({ limit: 10, window: "1h", countRejected: true }))];
    const checks = [narrow, counting].map((limit): Check => ({ limit, key: "k", cost: 1 }));
    await store.consumeAll(checks);
    for (let i = 0; i < 3; i++) expect(await runsDuring(server, () => store.consumeAll(checks))).toBe(1);
  });

  it("asks Redis if one limit is not cached, or if only a shadow limit would reject", async () => {
    const store = await storeOf();
    const [narrow, wide] = [limitOf(yearly(1)), limitOf(yearly(10))];
    await store.consume(narrow, "k");
    await store.consume(narrow, "k");
    const both: Check[] = [
      { limit: narrow, key: "k", cost: 1 },
      { limit: wide, key: "k", cost: 1 },
    ];
    expect(await runsDuring(server, () => store.consumeAll(both))).toBe(1);
    const shadow = both.map((check) => ({ ...check, shadow: check.limit === narrow }));
    let answers: Decision[] = [];
    const runs = await runsDuring(server, async () => {
      answers = await store.consumeAll(shadow);
    });
    expect(runs).toBe(1);
    expect(answers).toMatchObject([{ allowed: false }, { allowed: true, remaining: 9 }]);
  });
});

it("a rejection does not cost more if thousands of other limits have rejected the key", () => {
  let looks = 0;
  const changes = { read: () => undefined, mayLast: () => false, holds: () => false } as unknown as Changes;
  const cache = new DenyCache({
    maxKeys: 100_000,
    get maxAgeMs() {
      looks++;
      return 1000;
    },
    changes,
    clock: undefined,
  });
  const limits = Array.from({ length: 3000 }, () => limitOf(yearly(1)));
  const known = limits.map((limit) => ({ limit, suffix: limit.name, maxAgeMs: 1e9, extendedAgeMs: 1e9 }));
  const rejectEach = (atMs: number): void => {
    const at = { atMs: nowMs + atMs, sentMs: atMs, receivedMs: atMs };
    for (const one of known) cache.add(one, "k", { cells: Float64Array.of(0, 1), spare: 0, blocked: undefined, ...at });
  };
  const atMs = performance.now();
  rejectEach(atMs);
  rejectEach(atMs);
  expect(looks).toBeLessThan(5 * 2 * limits.length);
  expect(known.filter((one) => cache.look(one, "k", 1) === undefined)).toEqual([]);
  rejectEach(atMs + 2000);
  expect(looks).toBeLessThan(5 * 4 * limits.length);
});

it("of more rejections of one key than maxKeys, the newest are cached", () => {
  const changes = { read: () => undefined, mayLast: () => false, holds: () => false } as unknown as Changes;
  const cache = new DenyCache({ maxKeys: 3, maxAgeMs: 1000, changes, clock });
  const known = Array.from({ length: 8 }, () => limitOf(yearly(1))).map((limit) => ({
    limit,
    suffix: limit.name,
    maxAgeMs: 1e9,
    extendedAgeMs: 1e9,
  }));
  const at = { atMs: nowMs, sentMs: nowMs, receivedMs: nowMs };
  for (const one of known) cache.add(one, "k", { cells: Float64Array.of(0, 1), spare: 0, blocked: undefined, ...at });
  expect(known.filter((one) => cache.look(one, "k", 1) !== undefined)).toEqual(known.slice(-3));
});
