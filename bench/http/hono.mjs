import { rateLimit } from "@floodgate/hono";
import { getRequestListener } from "@hono/node-server";
import { getConnInfo } from "@hono/node-server/conninfo";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { answer, listenerOf, rejection, twoHeaders, windowMs } from "./common.mjs";

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

export const listener = listenerOf({ noop, rejectingNoop, rateLimit, peer }, (limit) => {
  const app = new Hono();
  if (limit !== undefined) app.use(limit);
  app.get("/", (c) => c.json(answer));
  return getRequestListener(app.fetch);
});
