import { rateLimit } from "@floodgate/express";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import { answer, neverReached, ours, twoHeaders, windowMs } from "./common.mjs";

function noop(_req, res, next) {
  for (const name in twoHeaders) res.setHeader(name, twoHeaders[name]);
  next();
}

const middlewares = {
  nothing: () => undefined,
  noop: () => noop,
  allowed: () => rateLimit(ours.allowed),
  denied: () => rateLimit(ours.denied),
  peer: () => expressRateLimit({ limit: neverReached, windowMs, standardHeaders: "draft-8", legacyHeaders: false }),
};

export function start(kind, host) {
  const app = express();
  const limit = middlewares[kind]();
  if (limit !== undefined) app.use(limit);
  app.get("/", (_req, res) => {
    res.json(answer);
  });
  return app.listen(0, host);
}
