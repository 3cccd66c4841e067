import { type Decision, fixedWindow, type Policy } from "@floodgate/core";
import { asCharge, type Check, createLimit, type Limit } from "@floodgate/core/store";
import type { Redis } from "ioredis";
import { type RedisStoreOptions, redisStore } from "../src/index.js";

/** Generous, for machines that run other tests at the same time. */
export const patienceMs = 20_000;

let names = 0;

/** A limit under an unused name. */
export function limitOf(policy: Policy): Limit {
  return createLimit(`limit-${names++}`, policy);
}

/** A limit per year, so that used units stay used during a test. */
export function yearly(limit: number): Policy {
  return fixedWindow({ limit, window: "365d" });
}

/** A store's methods without the timeout parameter. */
export interface PatientStore {
  consume(limit: Limit, key: string, cost?: number): Promise<Decision>;
  consumeAll(checks: readonly Check[]): Promise<Decision[]>;
  settle(limit: Limit, key: string, decision: Decision, cost: number): Promise<number>;
  reset(limit: Limit, key: string): Promise<void>;
  block(limit: Limit, key: string, forMs: number): Promise<void>;
}

/** A store with a long-lived deny cache and a long timeout that already knows the server's clock. */
export async function patientStore(redis: Redis, options: RedisStoreOptions = {}): Promise<PatientStore> {
  const store = redisStore(redis, { denyCache: { maxAgeMs: patienceMs }, ...options });
  await store.peek(limitOf(yearly(1)), "none", patienceMs);
  return {
    consume: async (limit, key, cost = 1) => store.consume(limit, key, cost, patienceMs),
    consumeAll: async (checks) => store.consumeAll(checks, patienceMs),
    settle: (limit, key, decision, cost) => store.settle(limit, key, asCharge(decision), cost, patienceMs),
    reset: (limit, key) => store.reset(limit, key, patienceMs),
    block: async (limit, key, forMs) => void (await store.block(limit.name, key, forMs, "block", patienceMs)),
  };
}
