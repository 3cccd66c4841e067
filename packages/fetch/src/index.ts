// Everything an app calls, so that it installs one package.
// biome-ignore-all assist/source/organizeImports: grouped by subject

export { type Checked, type FetchContext, type FetchRequest, vercelIp } from "./check.js";
export { type FetchRateLimitOptions, type RateLimitWrapper, rateLimit } from "./rate-limit.js";
export { decisionOf } from "@floodgate/core/adapter";

// Policies, limiters, decisions, errors and events
export * from "@floodgate/core";
// The default store
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "@floodgate/store-memory";
