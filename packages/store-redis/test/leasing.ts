import { createLimiter, fixedWindow, type Limiter, type Policy } from "@floodgate/core";
import type { RedisServer } from "@floodgate/test-servers";
import type { Redis } from "ioredis";
import { beforeEach } from "vitest";
import { type RedisStore, type RedisStoreOptions, redisStore } from "../src/index.js";
import { patienceMs } from "./patient-store.js";
import { anotherProcess, useRedis } from "./use-redis.js";

/** What the stores of a test share. */
export const world = { server: undefined as unknown as RedisServer, redis: undefined as unknown as Redis, nowMs: 0, prefix: "" };

/** Starts a server for the test file. Each test has keys and a clock of its own. */
export function useLeases(): void {
  useRedis((server, redis) => {
    Object.assign(world, { server, redis });
  });
  let prefixes = 0;
  beforeEach(() => {
    Object.assign(world, { nowMs: 1_700_000_000_000, prefix: `leases-${prefixes++}` });
  });
}

/** A store with leases under the clock of the test, in a process of its own. */
export function leasing(options: RedisStoreOptions = {}): RedisStore {
  return redisStore(anotherProcess(world.redis), { lease: true, clock: () => world.nowMs, prefix: world.prefix, ...options });
}

export function limiterOn(store: RedisStore, policy: Policy, options: { name?: string; lease?: boolean } = {}): Limiter<"async"> {
  return createLimiter({ name: "api", policy, store, timeoutMs: patienceMs, onStoreError: "deny", ...options });
}

/** Makes requests one after the other, and returns how many were allowed. No fetch is in flight then. */
export async function consume(limiter: Limiter<"async">, requests: number, key = "hot"): Promise<number> {
  let allowed = 0;
  for (let i = 0; i < requests; i++) if ((await limiter.consume(key)).allowed) allowed++;
  await charged(limiter, key);
  return allowed;
}

/** The units that Redis counts for a key. */
export async function charged(limiter: Limiter<"async">, key = "hot"): Promise<number> {
  return (await limiter.keyState(key)).decision.used;
}

export const minutely = fixedWindow({ limit: 1000, window: "1m" });
