// Everything an app calls, so that it installs one package.
// biome-ignore-all assist/source/organizeImports: grouped by subject

export { FloodgateGuard, RateLimitDecision, RateLimitException } from "./guard.js";
export { Floodgate, type FloodgateModuleOptions, RateLimit, type RouteRateLimitOptions, SkipRateLimit } from "./floodgate.js";
export { FloodgateModule } from "./module.js";

// Policies, limiters, decisions, errors and events
export * from "@floodgate/core";
// The default store
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "@floodgate/store-memory";
