// Everything an app calls, so that it installs one package.
// biome-ignore-all assist/source/organizeImports: grouped by subject

export type { KoaContext, RateLimitState } from "./request.js";
export { type KoaRateLimitOptions, type RateLimitMiddleware, rateLimit } from "./rate-limit.js";

// Policies, limiters, decisions, errors and events
export * from "@floodgate/core";
// The default store
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "@floodgate/store-memory";
