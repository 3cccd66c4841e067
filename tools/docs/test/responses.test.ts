import { createServer, type Server } from "node:http";
import { documentOf } from "@floodgate/docs";
import { rateLimit } from "@floodgate/express";
import express from "express";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { listen } from "../../../test/listen.js";

// The responses that the pages show are those of their one line.

let server: Server;
let allowed: Response;
let rejected: Response;

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2030, 0, 1) });
  const app = express();
  app.use(rateLimit({ limit: 100, window: "1m" }));
  app.get("/", (_req, res) => void res.send("hello"));
  server = createServer(app);
  const url = `http://127.0.0.1:${await listen(server)}/`;

  allowed = await fetch(url);
  // The window ends in 20.3 s, and the first unit is free 0.6 s later.
  vi.setSystemTime(Date.UTC(2030, 0, 1, 0, 0, 39, 700));
  for (let i = 1; i < 100; i++) await fetch(url);
  rejected = await fetch(url);
});

afterAll(() => {
  vi.useRealTimers();
  server.close();
});

it.each(["README.md", "docs/headers.md"])("%s shows the 429 that a client gets", async (page) => {
  await expectShown(page, rejected);
});

it.each(["docs/getting-started.md", "docs/headers.md"])("%s shows the headers of an allowed response", async (page) => {
  await expectShown(page, allowed);
});

/** Expects that a page shows the status of a response, and nothing of it that is not true. */
async function expectShown(page: string, response: Response): Promise<void> {
  const { blocks } = documentOf(page);
  const shown = blocks.find(({ language, code }) => language === "http" && code.startsWith(`HTTP/1.1 ${response.status} `))?.code ?? "";
  const [head = "", body = ""] = shown.trim().split("\n\n");
  const [status, ...headers] = head.split("\n");
  expect(status).toBe(`HTTP/1.1 ${response.status} ${response.statusText}`);
  expect(headers.length).toBeGreaterThan(1);
  expect(headers).toEqual(headers.map((header) => header.split(": ")[0] ?? "").map((name) => `${name}: ${response.headers.get(name)}`));
  if (body !== "") expect(JSON.parse(body)).toEqual(await response.clone().json());
}
