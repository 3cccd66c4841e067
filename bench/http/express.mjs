import { rateLimit } from "@floodgate/express";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import { answer, middlewaresOf, rejection, twoHeaders, windowMs } from "./common.mjs";

function noop(_req, res, next) {
  for (const name in twoHeaders) res.setHeader(name, twoHeaders[name]);
  next();
}

function rejectingNoop(_req, res) {
  res.statusCode = 429;
  for (const name in rejection.headers) res.setHeader(name, rejection.headers[name]);
  res.end(rejection.body);
}

const peer = (limit) => expressRateLimit({ limit, windowMs, standardHeaders: "draft-8", legacyHeaders: false });

const middlewares = middlewaresOf({ noop, rejectingNoop, rateLimit, peer });

export function listener(kind) {
  const app = express();
  const limit = middlewares[kind]();
  if (limit !== undefined) app.use(limit);
  app.get("/", (_req, res) => {
    res.json(answer);
  });
  return app;
}
