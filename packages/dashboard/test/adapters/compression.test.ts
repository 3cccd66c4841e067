import compression from "compression";
import express from "express";
import { afterEach, expect, it } from "vitest";
import type { LiveFigures } from "../../src/contract.js";
import { dashboard } from "../../src/express.js";
import { type Listening, listening } from "../listening.js";
import { ask, openEvents } from "./http.js";

const own = dashboard();
let running: Listening;
afterEach(async () => {
  own.close();
  await running.close();
});

it("an app that compresses its answers holds no event back", async () => {
  const app = express();
  app.use(compression({ threshold: 0 }));
  app.use("/f", own);
  app.get("/", (_, res) => void res.send("hello"));
  running = await listening(app);
  const headers = { "Accept-Encoding": "gzip" };
  expect((await ask(running.port, "/", { headers })).headers["content-encoding"]).toBe("gzip");
  const stream = await openEvents(running.port, "/f/data/live", headers);
  for (let i = 0; i < 2; i++) expect(((await stream.next()) as LiveFigures).minute.points).toBe(60);
  stream.close();
  expect((await ask(running.port, "/f", { headers })).text).toContain("<!doctype html>");
});
