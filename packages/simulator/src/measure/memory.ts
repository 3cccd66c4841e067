import type { Policy } from "@floodgate/core";
import { widthOf } from "./key-state.js";

/** The memory that a store would need for one rule, in bytes: about, as measured in docs/performance.md. */
export interface MemoryNeed {
  readonly inMemory: number;
  readonly inRedis: number;
}

/** Bytes of a key in the memory store, without the numbers of its state, 8 each; and of a key in Redis. */
const bytesOfKey = 108;
const bytesOfRedisKey = 120;
const bytesOfRedisEntry = 14;

/** @param entries how many entries the log of a key has, if the policy is a log. */
export function memoryNeed(policy: Policy, keys: number, entries: number): MemoryNeed {
  const cells = widthOf(policy);
  const more = policy.algorithm === "sliding-window-log" ? Math.max(0, entries - 1) : 0;
  return {
    inMemory: Math.round(keys * (bytesOfKey + 8 * (cells + 2 * more))),
    inRedis: Math.round(keys * (bytesOfRedisKey + bytesOfRedisEntry * more)),
  };
}
