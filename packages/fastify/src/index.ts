// Everything an app calls, so that it installs one package.
// biome-ignore-all assist/source/organizeImports: grouped by subject

export { type FastifyRateLimitOptions, type RateLimitPlugin, type RouteRateLimitOptions, rateLimit } from "./rate-limit.js";
// For adapters of frameworks that stand on Fastify
export { fastifyReader } from "./request.js";

// Policies, limiters, decisions, errors and events
export * from "@floodgate/core";
// The default store
export { type MemoryStore, type MemoryStoreOptions, memoryStore } from "@floodgate/store-memory";
