import { type OnStoreError, type Policy, type Rule, tokenBucket } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";

/** How many requests of a client pass. */
export const capacity = 6;

/** The limit whose every decision is checked. */
export const clientLimit = "client";

/** So slow to refill that what was charged stays charged to the unit, and with no boundary that a test could meet. */
export const clientPolicy: Policy = tokenBucket({ capacity, refill: 1, every: "30d" });

const perClient: Rule<unknown> = { name: clientLimit, key: "header:x-client", policy: clientPolicy };
/** Never reached: another key, in a Cluster mostly in another slot. */
const overall: Rule<unknown> = { name: "overall", key: "global", policy: tokenBucket({ capacity: 500_000, refill: 1, every: "30d" }) };

/** One limit, and several in one step; the count of a client's is one. */
export const oneLimit: readonly Rule<unknown>[] = [perClient];
export const twoLimits: readonly Rule<unknown>[] = [overall, perClient];

export type OnStoreErrorName = "allow" | "deny" | "fallback";

/** How many of a client's requests pass without Redis where there is a fallback. */
export const share: number = capacity / 2;

export function onStoreError(name: OnStoreErrorName): OnStoreError {
  return name === "fallback" ? { store: memoryStore(), share: share / capacity } : name;
}
