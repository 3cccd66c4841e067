export { type ExpressRateLimitOptions, type ExpressResponse, type RateLimitMiddleware, rateLimit } from "./rate-limit.js";
export type { ExpressMessage, ExpressRequest } from "./request.js";
