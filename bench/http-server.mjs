import { once } from "node:events";
import express from "express";
import { serve } from "./lib/child.mjs";

const [kind, host] = process.argv.slice(2);

/** The two headers that ours sets, for nothing: what any limiter that answers in headers has to pay. */
function twoHeaders(_req, res, next) {
  res.setHeader("RateLimit-Policy", '"default";q=1000000000;w=3600');
  res.setHeader("RateLimit", '"default";r=999999999;t=3600');
  next();
}

async function middleware() {
  if (kind === "nothing") return undefined;
  if (kind === "noop") return twoHeaders;
  if (kind === "express-rate-limit") {
    const { rateLimit } = await import("express-rate-limit");
    return rateLimit({ limit: 1e9, windowMs: 3_600_000, standardHeaders: "draft-8", legacyHeaders: false });
  }
  const { rateLimit } = await import("@floodgate/express");
  return rateLimit({ limit: kind === "denied" ? 1 : 1e9, window: "1h" });
}

const app = express();
const limit = await middleware();
if (limit !== undefined) app.use(limit);
app.get("/", (_req, res) => {
  res.json({ hello: "world" });
});
const server = app.listen(0, host);
await once(server, "listening");

serve((question) => {
  if (question === "port") return server.address().port;
  const { user, system } = process.cpuUsage();
  return user + system;
});
