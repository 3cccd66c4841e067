import { setTimeout as sleep } from "node:timers/promises";
import {
  consumeAll,
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  type Key,
  type Limiter,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import type { RedisServer } from "@floodgate/test-servers";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { redisStore } from "../src/index.js";
import { policies } from "./policies.js";
import { useRedis } from "./use-redis.js";

// Generous, for machines that run other tests at the same time.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const timeoutMs = 20_000;

let server: RedisServer;
let redis: Redis;
useRedis((started, client) => {
  server = started;
  redis = client;
});

/** One step on one of two limits, or on both, after a pause. */
type Step = { readonly waitMs: number } & (
  | { readonly act: "consume" | "peek" | "reset"; readonly limit: number; readonly key: string; readonly cost: number }
  | { readonly act: "settle"; readonly which: number; readonly cost: number }
  | { readonly act: "all"; readonly key: string; readonly cost: number }
);

function lives(waitMs: fc.Arbitrary<number>): fc.Arbitrary<[[Policy, Policy], Step[]]> {
  const key = fc.constantFrom("a", "b");
  const cost = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 3 }) }, { weight: 1, arbitrary: fc.constant(13) });
  const act = fc.constantFrom("consume" as const, "consume", "consume", "peek", "reset");
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ act, waitMs, limit: fc.nat(1), key, cost }) },
    {
      weight: 3,
      arbitrary: fc.record({ act: fc.constant("settle" as const), waitMs, which: fc.nat(8), cost: fc.oneof(fc.constant(0), fc.nat(40)) }),
    },
    { weight: 2, arbitrary: fc.record({ act: fc.constant("all" as const), waitMs, key, cost }) },
  );
  return fc.tuple(fc.tuple(policies, policies), fc.array(step, { minLength: 1, maxLength: 15 }));
}

let lived = 0;

/** Two limits on an empty server, and their charges. */
class Life {
  readonly limiters: readonly Limiter<"async">[];
  readonly #charged: [Limiter<"async">, string, Decision][] = [];

  constructor(policies: readonly Policy[], clock?: () => number) {
    const store = redisStore(redis, { prefix: `life-${lived++}`, ...(clock === undefined ? {} : { clock }) });
    this.limiters = policies.map((policy, i) => createLimiter({ name: `limit-${i}`, policy, store, timeoutMs }));
  }

  /** Returns whether the step may have created a key. */
  async live(step: Step): Promise<boolean> {
    if (step.act === "settle") {
      const [limiter, key, decision] = this.#charged.at(-1 - step.which) ?? [];
      // A bucket charges a higher cost even after expiry.
      return limiter !== undefined && (await limiter.settle(key as string, decision as Decision, step.cost)) > 0;
    }
    if (step.act === "all") {
      const checks = this.limiters.map((limiter) => ({ limiter, key: step.key, cost: step.cost }));
      const { allowed, all } = await consumeAll(checks);
      if (allowed) for (const [i, limiter] of this.limiters.entries()) this.#charged.push([limiter, step.key, all[i] as Decision]);
      return allowed || this.limiters.some(logsRejected);
    }
    const limiter = this.limiters[step.limit] as Limiter<"async">;
    if (step.act === "reset") {
      await limiter.reset(step.key);
      expect(await names(`*{${step.key}}:${limiter.name}:*`)).toEqual([]);
      return false;
    }
    if (step.act === "peek") {
      await limiter.peek(step.key);
      return false;
    }
    const decision = await limiter.consume(step.key, { cost: step.cost });
    if (decision.allowed) this.#charged.push([limiter, step.key, decision]);
    return decision.allowed || logsRejected(limiter);
  }
}

const logsRejected = ({ policy }: Limiter): boolean => policy.algorithm === "sliding-window-log" && policy.countRejected;

/** By default the names of all keys of limits. */
async function names(pattern = "*{*"): Promise<string[]> {
  return ((await server.command("KEYS", pattern)) as string[]).sort();
}

/** The time to live by the server's clock: -1 if the key never expires, -2 if there is no key. */
async function expiryOf(name: string): Promise<number> {
  return (await server.command("PEXPIRETIME", name)) as number;
}

/** Asserts the expiry: never early, and late at most by the time between the script's reading of the clock and its write. */
function expectAt(expiryMs: number, resetAtMs: number): void {
  expect(expiryMs).toBeGreaterThanOrEqual(resetAtMs);
  expect(expiryMs).toBeLessThan(resetAtMs + 1000);
}

async function serverMs(): Promise<number> {
  const [seconds, micros] = (await server.command("TIME")) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

describe("every key expires", () => {
  it("by the server's clock, exactly when its state is the same as no state", async () => {
    const waits = fc.oneof(
      { weight: 5, arbitrary: fc.constant(0) },
      { weight: 2, arbitrary: fc.nat(12) },
      { weight: 1, arbitrary: fc.nat(70) },
    );
    await fc.assert(
      fc.asyncProperty(lives(waits), async ([pair, steps]) => {
        await server.command("FLUSHALL");
        const life = new Life(pair);
        for (const step of steps) {
          if (step.waitMs > 0) await sleep(step.waitMs);
          const before = await names();
          const mayLeaveKeys = await life.live(step);
          if (!mayLeaveKeys) expect(before).toEqual(expect.arrayContaining(await names()));
          for (const limiter of life.limiters) {
            for (const key of ["a", "b"]) {
              const { atMs, resetAfterMs } = await limiter.peek(key);
              const [name = "none"] = await names(`*{${key}}:${limiter.name}:*`);
              const expiryMs = await expiryOf(name);
              if (expiryMs === -2) expect(resetAfterMs === 0 || (await serverMs()) >= atMs + resetAfterMs).toBe(true);
              else expectAt(expiryMs, atMs + resetAfterMs);
            }
          }
        }
      }),
      runs(60),
    );
  });

  it("with an injected clock, at least a minute after the last write and not before its state ends", async () => {
    const waits = fc.oneof(
      { weight: 3, arbitrary: fc.nat(20) },
      { weight: 2, arbitrary: fc.nat(1300) },
      { weight: 1, arbitrary: fc.nat(200_000) },
    );
    await fc.assert(
      fc.asyncProperty(lives(waits), async ([pair, steps]) => {
        await server.command("FLUSHALL");
        let nowMs = 1_789_948_800_000;
        const life = new Life(pair, () => nowMs);
        for (const step of steps) {
          nowMs += step.waitMs;
          const before = await names();
          const mayLeaveKeys = await life.live(step);
          if (!mayLeaveKeys) expect(before).toEqual(expect.arrayContaining(await names()));
          for (const limiter of life.limiters) {
            for (const key of ["a", "b"]) {
              const { resetAfterMs } = await limiter.peek(key);
              const [name = "none"] = await names(`*{${key}}:${limiter.name}:*`);
              const leftMs = (await server.command("PTTL", name)) as number;
              if (leftMs === -2) expect(resetAfterMs).toBe(0);
              else expect(leftMs).toBeGreaterThanOrEqual(Math.max(resetAfterMs, 1));
            }
          }
        }
      }),
      runs(60),
    );
  });
});

describe.each<[string, Policy]>([
  ["a fixed window", fixedWindow({ limit: 5, window: "40ms" })],
  ["a sliding counter", slidingWindowCounter({ limit: 5, window: "40ms" })],
  ["a sliding counter of several buckets", slidingWindowCounter({ limit: 5, window: "40ms", buckets: 4 })],
  ["a sliding log", slidingWindowLog({ limit: 5, window: "40ms" })],
  ["a smooth bucket", tokenBucket({ capacity: 5, refill: 5, every: "40ms" })],
  ["an interval bucket", tokenBucket({ capacity: 5, refill: 5, every: "40ms", style: "interval" })],
  ["GCRA", gcra({ limit: 5, window: "40ms" })],
  ["a leaky bucket", leakyBucket({ capacity: 5, leak: 5, every: "40ms" })],
])("a key of %s in parts of a second", (name, policy) => {
  it("when its debt is paid off, to the millisecond", async () => {
    await server.command("FLUSHALL");
    const limiter = createLimiter({ name, policy, store: redisStore(redis), timeoutMs });
    // On a slow machine, a charge may have left its window before it is settled.
    while ((await limiter.settle("k", await limiter.consume("k", { cost: 3 }), 4000)) === 0);
    const { atMs, resetAfterMs } = await limiter.peek("k");
    const expiryMs = await expiryOf((await names())[0] ?? "none");
    if (expiryMs !== -2) expectAt(expiryMs, atMs + resetAfterMs);
    else expect(await serverMs()).toBeGreaterThanOrEqual(atMs + resetAfterMs);
  });

  it("with its state, and a later refund creates no key", async () => {
    await server.command("FLUSHALL");
    const limiter = createLimiter({ name, policy, store: redisStore(redis), timeoutMs });
    const decision = await limiter.consume("k", { cost: 3 });
    const expiryMs = await expiryOf((await names())[0] ?? "none");
    if (expiryMs !== -2) expectAt(expiryMs, decision.atMs + decision.resetAfterMs);
    await expect.poll(names, { interval: 5, timeout: timeoutMs }).toEqual([]);
    expect(await serverMs()).toBeGreaterThanOrEqual(decision.atMs + decision.resetAfterMs);
    expect(await limiter.refund("k", decision)).toBe(0);
    expect(await names()).toEqual([]);
    expect((await limiter.peek("k")).remaining).toBe(5);
  });
});

it("a reset deletes exactly one key", async () => {
  const keys: readonly Key[] = [
    "user",
    "user:2",
    "user*",
    "*",
    "?ser",
    "[u]ser",
    "u",
    "",
    " ",
    "{user}",
    "user}",
    "%",
    ["user"],
    ["user", "2"],
  ];
  const limiter = (name: string, window: "364d" | "365d") =>
    createLimiter({ name, policy: fixedWindow({ limit: 9, window }), store, timeoutMs });
  const store = redisStore(redis);
  const limiters = [limiter("a", "364d"), limiter("a:b", "364d"), limiter("*", "364d"), limiter("a*", "365d")];
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.constantFrom(...keys), { minLength: 1 }), fc.nat(), fc.nat(3), async (used, of, which) => {
      await server.command("FLUSHALL");
      for (const each of limiters) for (const key of used) await each.consume(key);
      const before = await names();
      expect(before).toHaveLength(used.length * limiters.length);
      const [key, reset] = [used[of % used.length] as Key, limiters[which] as Limiter<"async">];
      await reset.reset(key);
      const after = await names();
      expect(before).toEqual(expect.arrayContaining(after));
      expect(after).toHaveLength(before.length - 1);
      for (const each of limiters) {
        for (const other of used) expect((await each.peek(other)).remaining).toBe(each === reset && other === key ? 9 : 8);
      }
    }),
    runs(30),
  );
});
