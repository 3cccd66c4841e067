import { setTimeout as wait } from "node:timers/promises";
import {
  createLimiter,
  fixedWindow,
  type Limiter,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { type RedisServer, startProxy, startRedis, type TcpProxy } from "@floodgate/test-servers";
import * as fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.js";
import { type RedisStore, redisStore } from "../src/index.js";
import { runsOf } from "./commands.js";
import { actions, LeaseWorld } from "./lease-world.js";
import { patienceMs } from "./patient-store.js";

vi.setConfig({ testTimeout: 60_000 });

const soon = { timeout: patienceMs, interval: 2 };

let server: RedisServer;
let proxy: TcpProxy;
let direct: Redis;
const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
beforeAll(async () => {
  process.on("unhandledRejection", onUnhandled);
  server = await startRedis();
  proxy = await startProxy(server.port);
  direct = new Redis(server.port);
});
afterAll(async () => {
  process.off("unhandledRejection", onUnhandled);
  direct?.disconnect();
  proxy?.stop();
  await server?.stop();
  expect(unhandled).toEqual([]);
});

let nowMs: number;
let prefixes = 0;
let prefix: string;
beforeEach(() => {
  nowMs = 1_700_000_000_000;
  prefix = `faults-${prefixes++}`;
});

function limiterOn(store: RedisStore, policy: Policy, timeoutMs = patienceMs): Limiter<"async"> {
  return createLimiter({ name: "api", policy, store, timeoutMs, onStoreError: "deny" });
}

function leasing(redis: Redis): RedisStore {
  return redisStore(redis, { lease: true, clock: () => nowMs, prefix });
}

/** The units that Redis counts for a key, asked past the proxy. */
async function charged(policy: Policy): Promise<number> {
  const other = limiterOn(redisStore(direct, { clock: () => nowMs, prefix }), policy);
  const { used } = (await other.keyState("hot")).decision;
  other.close();
  return used;
}

const policies: [string, Policy][] = [
  ["fixed window", fixedWindow({ limit: 1000, window: "1h" })],
  ["token bucket", tokenBucket({ capacity: 1000, refill: 1, every: "1d" })],
  ["log", slidingWindowLog({ limit: 1000, window: "1h" })],
  ["counter", slidingWindowCounter({ limit: 1000, window: "1h" })],
];

describe.each(policies)("a lease of a %s through a broken connection", (_, policy) => {
  let redis: Redis;
  let store: RedisStore;
  let limiter: Limiter<"async">;
  beforeEach(() => {
    redis = new Redis(proxy.port);
    redis.on("error", () => undefined);
    store = leasing(redis);
    limiter = limiterOn(store, policy);
  });
  afterEach(() => {
    proxy.requests.mode = proxy.replies.mode = "pass";
    redis.disconnect();
  });

  async function consume(requests: number): Promise<void> {
    for (let i = 0; i < requests; i++) await limiter.consume("hot");
    await limiter.keyState("hot");
  }

  it("is given back once, although the library repeats the command whose reply was lost", async () => {
    await consume(40);
    expect(await charged(policy)).toBeGreaterThan(40);
    proxy.replies.mode = "drop";
    const givenBack = store.releaseLeases();
    await expect.poll(() => charged(policy), soon).toBe(40);
    const runs = await runsOf(server);
    proxy.cut();
    await expect.poll(() => proxy.connections, soon).toBe(0);
    proxy.replies.mode = "pass";
    await givenBack;
    expect(await runsOf(server)).toBeGreaterThan(runs);
    expect(await charged(policy)).toBe(40);
  });
});

describe.each(policies)("units of a %s that are leased while Redis does not answer", (_, policy) => {
  let redis: Redis;
  let store: RedisStore;
  let limiter: Limiter<"async">;
  beforeEach(() => {
    redis = new Redis(proxy.port);
    redis.on("error", () => undefined);
    store = leasing(redis);
    limiter = limiterOn(store, policy);
  });
  afterEach(() => redis.disconnect());

  /** Until the store has stopped to wait. */
  async function silence(direction: "requests" | "replies", act: () => Promise<unknown>): Promise<void> {
    proxy[direction].mode = "drop";
    await act();
    await store.releaseLeases();
    proxy.cut();
    proxy[direction].mode = "pass";
  }

  it.each(["requests", "replies"] as const)("are given back once it answers again, although no %s arrived", async (direction) => {
    for (let i = 0; i < 40; i++) await limiter.consume("hot");
    await limiter.keyState("hot");
    const used = await charged(policy);
    await silence(direction, async () => {
      nowMs += 100;
    });
    expect(used).toBeGreaterThan(40);
    await expect.poll(() => charged(policy), soon).toBe(40);
  });

  it.each(["requests", "replies"] as const)("are given back although no %s of their fetch arrived", async (direction) => {
    for (let i = 0; i < 9; i++) await limiter.consume("hot");
    expect(await charged(policy)).toBe(9);
    await silence(direction, () => limiterOn(store, policy, 100).consume("hot"));
    // Nobody knows whether the last request was charged.
    await expect.poll(() => charged(policy), soon).toBeLessThanOrEqual(10);
    expect((await direct.keys(`${prefix}:*:lease-*`)).length).toBeLessThanOrEqual(1);
  });
});

describe("three processes with leases, whose connections break", () => {
  /** Faults that end by themselves: a lost reply whose command is sent again, late replies, late commands, and a server that hangs. */
  const faults: readonly (() => Promise<void>)[] = [
    async () => {
      proxy.replies.mode = "drop";
      await wait(5);
      proxy.cut();
      proxy.replies.mode = "pass";
    },
    async () => {
      proxy.replies.mode = "hold";
      await wait(10);
      proxy.replies.mode = "pass";
    },
    async () => {
      proxy.requests.mode = "hold";
      await wait(10);
      proxy.cut();
      proxy.requests.mode = "pass";
    },
    async () => {
      server.pause();
      await wait(10);
      server.resume();
    },
  ];

  async function serverUs(): Promise<number> {
    const [seconds, us] = (await direct.time()) as [number, number];
    return Number(seconds) * 1_000_000 + Number(us);
  }

  const policies: [string, Policy][] = [
    ["fixed window", fixedWindow({ limit: 80, window: "500ms" })],
    ["token bucket", tokenBucket({ capacity: 80, refill: 80, every: "500ms" })],
    ["log", slidingWindowLog({ limit: 80, window: "500ms" })],
    ["counter", slidingWindowCounter({ limit: 80, window: "500ms" })],
  ];

  it.each(policies)("never spend more than a %s allows", async (_, policy) => {
    const clients = Array.from({ length: 3 }, () => new Redis(proxy.port));
    for (const client of clients) client.on("error", () => undefined);
    await fc.assert(
      fc.asyncProperty(fc.noShrink(actions), fc.infiniteStream(fc.nat(3)), async (steps, which) => {
        const world = new LeaseWorld(clients, `broken-${prefixes++}`, [policy, fixedWindow({ limit: 90, window: "700ms" })], patienceMs);
        for (const step of steps) {
          // A refund that is sent again gives back twice.
          if (step.do === "refund") continue;
          const healed = step.do === "fault" || step.do === "give-back" ? faults[which.next().value as number]?.() : undefined;
          await world.act(step, serverUs);
          if (step.do === "give-back") await healed;
        }
        world.check();
        world.close();
      }),
      runs(8),
    );
    for (const client of clients) client.disconnect();
  });
});

describe("leases of a Redis that has died", () => {
  it("are given back in vain, by the store and by close, as often as you like", async () => {
    const mortal = await startRedis();
    const redis = new Redis(mortal.port);
    redis.on("error", () => undefined);
    const store = redisStore(redis, { lease: { lifeMs: 10_000 } });
    const limiter = limiterOn(store, fixedWindow({ limit: 1000, window: "1h" }), 200);
    for (let i = 0; i < 40; i++) await limiter.consume("hot");
    await limiter.keyState("hot");
    await mortal.stop();
    limiter.close();
    limiter.close();
    await store.releaseLeases();
    await store.releaseLeases();
    redis.disconnect();
    await store.releaseLeases();
  });
});
