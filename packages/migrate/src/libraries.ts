import { rules as expressRateLimit } from "./express-rate-limit.js";
import { rules as fastifyRateLimit } from "./fastify-rate-limit.js";
import { rules as honoRateLimiter } from "./hono-rate-limiter.js";
import { rules as koaRatelimit } from "./koa-ratelimit.js";
import { type LimiterRules, rateLimiterFlexible, upstashRatelimit } from "./limiters.js";
import { rules as nestjsThrottler } from "./nestjs-throttler.js";
import type { MiddlewareRules } from "./rewriting.js";

/** Their calls are rewritten. */
type Middleware = "express-rate-limit" | "koa-ratelimit" | "hono-rate-limiter" | "@fastify/rate-limit" | "@nestjs/throttler";
/** Their calls are only reported. */
type Limiter = "rate-limiter-flexible" | "@upstash/ratelimit";

/** The libraries that `migrate` knows. */
export type Library = Middleware | Limiter;

export const middlewares: Readonly<Record<Middleware, MiddlewareRules>> = {
  "express-rate-limit": expressRateLimit,
  "koa-ratelimit": koaRatelimit,
  "hono-rate-limiter": honoRateLimiter,
  "@fastify/rate-limit": fastifyRateLimit,
  "@nestjs/throttler": nestjsThrottler,
};

export const limiters: Readonly<Record<Limiter, LimiterRules>> = {
  "rate-limiter-flexible": rateLimiterFlexible,
  "@upstash/ratelimit": upstashRatelimit,
};

export const libraries: readonly Library[] = [...Object.keys(middlewares), ...Object.keys(limiters)] as Library[];
