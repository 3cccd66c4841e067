import { rateLimit } from "@floodgate/express";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import { answer, middlewaresOf, nodeNoops, windowMs } from "./common.mjs";

const peer = (limit) => expressRateLimit({ limit, windowMs, standardHeaders: "draft-8", legacyHeaders: false });

const middlewares = middlewaresOf({ ...nodeNoops, rateLimit, peer });

export function listener(kind) {
  const app = express();
  const limit = middlewares[kind]();
  if (limit !== undefined) app.use(limit);
  app.get("/", (_req, res) => {
    res.json(answer);
  });
  return app;
}
