import { rateLimit } from "@floodgate/express";
import express from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
import { answer, listenerOf, nodeNoops, windowMs } from "./common.mjs";

const peer = (limit) => expressRateLimit({ limit, windowMs, standardHeaders: "draft-8", legacyHeaders: false });

export const listener = listenerOf({ ...nodeNoops, rateLimit, peer }, (limit) => {
  const app = express();
  if (limit !== undefined) app.use(limit);
  app.get("/", (_req, res) => {
    res.json(answer);
  });
  return app;
});
