import { type OnStoreError, type Policy, type Rule, tokenBucket } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";

/** The number of a client's requests that pass. */
export const capacity = 6;

/** The limit whose decisions are all checked. */
export const clientLimit = "client";

/** Refills so slowly that charges stay exact, and has no window edge that a test could hit. */
export const clientPolicy: Policy = tokenBucket({ capacity, refill: 1, every: "30d" });

const perClient: Rule<unknown> = { name: clientLimit, key: "header:x-client", policy: clientPolicy };
/** A limit that is never reached, with another key: in a Cluster mostly in another slot. */
const overall: Rule<unknown> = { name: "overall", key: "global", policy: tokenBucket({ capacity: 500_000, refill: 1, every: "30d" }) };

/** One limit, and several in one step. A client has one count in both. */
export const oneLimit: readonly Rule<unknown>[] = [perClient];
export const twoLimits: readonly Rule<unknown>[] = [overall, perClient];

export type OnStoreErrorName = "allow" | "deny" | "fallback";

/** The number of a client's requests that the fallback allows. */
export const share: number = capacity / 2;

export function onStoreError(name: OnStoreErrorName): OnStoreError {
  return name === "fallback" ? { store: memoryStore(), share: share / capacity } : name;
}
