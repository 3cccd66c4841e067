export { type HonoRateLimitOptions, type RateLimitMiddleware, type RateLimitVariables, rateLimit } from "./rate-limit.js";
