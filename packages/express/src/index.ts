export { type ExpressRateLimitOptions, type ExpressResponse, type RateLimitMiddleware, rateLimit } from "./rate-limit.js";
export type { ExpressRequest } from "./request.js";
