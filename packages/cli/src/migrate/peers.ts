import type { PeerRules } from "./rewriting.js";

/** The libraries that `migrate` knows, and where their rules are. They are loaded when one is asked for. */
export const peers: Readonly<Record<string, () => Promise<{ readonly rules: PeerRules }>>> = {
  "express-rate-limit": () => import("./peers/express-rate-limit.js"),
  "koa-ratelimit": () => import("./peers/koa-ratelimit.js"),
  "hono-rate-limiter": () => import("./peers/hono-rate-limiter.js"),
};
