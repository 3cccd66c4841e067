// Everything an app calls, so that it installs one package.
// biome-ignore-all assist/source/organizeImports: grouped by subject

export { type ExpressRateLimitOptions, type ExpressResponse, type RateLimitMiddleware, rateLimit } from "./rate-limit.js";
export type { ExpressMessage, ExpressRequest } from "./request.js";
// For adapters of frameworks that stand on Express
export { expressReader } from "./request.js";

// Policies, limiters, decisions, errors and events
export * from "@floodgate/core";
// The default store
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "@floodgate/store-memory";
