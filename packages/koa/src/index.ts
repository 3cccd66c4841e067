export type { KoaContext, RateLimitState } from "./context.js";
export { type KoaRateLimitOptions, type RateLimitMiddleware, rateLimit } from "./rate-limit.js";
