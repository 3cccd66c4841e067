/** The libraries that `migrate` knows. Apart from their rules, which need the parser. */
export const libraries = [
  "express-rate-limit",
  "rate-limiter-flexible",
  "@upstash/ratelimit",
  "koa-ratelimit",
  "hono-rate-limiter",
] as const;

export type Library = (typeof libraries)[number];
