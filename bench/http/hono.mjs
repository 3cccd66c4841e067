import { rateLimit } from "@floodgate/hono";
import { serve } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { answer, neverReached, ours, twoHeaders, windowMs } from "./common.mjs";

function noop(c, next) {
  for (const name in twoHeaders) c.header(name, twoHeaders[name]);
  return next();
}

/** It has no default: whoever uses it writes this. */
const keyGenerator = (c) => getConnInfo(c).remote.address;

const middlewares = {
  nothing: () => undefined,
  noop: () => noop,
  allowed: () => rateLimit(ours.allowed),
  denied: () => rateLimit(ours.denied),
  peer: () => rateLimiter({ limit: neverReached, windowMs, standardHeaders: "draft-7", keyGenerator }),
};

export function start(kind, hostname) {
  const app = new Hono();
  const limit = middlewares[kind]();
  if (limit !== undefined) app.use(limit);
  app.get("/", (c) => c.json(answer));
  return serve({ fetch: app.fetch, port: 0, hostname });
}
