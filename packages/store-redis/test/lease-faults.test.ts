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
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type RedisStore, redisStore } from "../src/index.js";
import { runsOf } from "./commands.js";
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
    const givenBack = store.giveBack();
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
