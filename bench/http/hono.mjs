import { rateLimit } from "@floodgate/hono";
import { getRequestListener } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { answer, middlewaresOf, rejection, twoHeaders, windowMs } from "./common.mjs";

function noop(c, next) {
  for (const name in twoHeaders) c.header(name, twoHeaders[name]);
  return next();
}

function rejectingNoop(c) {
  return c.body(rejection.body, 429, rejection.headers);
}

/** The peer has no default, so its users write this. */
const keyGenerator = (c) => getConnInfo(c).remote.address;

const peer = (limit) => rateLimiter({ limit, windowMs, standardHeaders: "draft-7", keyGenerator });

const middlewares = middlewaresOf({ noop, rejectingNoop, rateLimit, peer });

export function listener(kind) {
  const app = new Hono();
  const limit = middlewares[kind]();
  if (limit !== undefined) app.use(limit);
  app.get("/", (c) => c.json(answer));
  return getRequestListener(app.fetch);
}
