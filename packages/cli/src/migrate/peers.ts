import type { Library } from "./libraries.js";
import { rules as expressRateLimit } from "./peers/express-rate-limit.js";
import { rules as honoRateLimiter } from "./peers/hono-rate-limiter.js";
import { rules as koaRatelimit } from "./peers/koa-ratelimit.js";
import { rules as rateLimiterFlexible } from "./peers/rate-limiter-flexible.js";
import { rules as upstashRatelimit } from "./peers/upstash-ratelimit.js";
import type { PeerRules } from "./rewriting.js";

export const peers: Readonly<Record<Library, PeerRules>> = {
  "express-rate-limit": expressRateLimit,
  "rate-limiter-flexible": rateLimiterFlexible,
  "@upstash/ratelimit": upstashRatelimit,
  "koa-ratelimit": koaRatelimit,
  "hono-rate-limiter": honoRateLimiter,
};
