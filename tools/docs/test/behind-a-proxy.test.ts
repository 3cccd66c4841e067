import { createServer, type Server } from "node:http";
import type { FloodgateEvent } from "@floodgate/core";
import { documentOf } from "@floodgate/docs";
import { rateLimit as expressLimit } from "@floodgate/express";
import { rateLimit as honoLimit } from "@floodgate/hono";
import { rateLimit as koaLimit } from "@floodgate/koa";
import { createAdaptorServer } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import Koa from "koa";
import { describe, expect, it, onTestFinished } from "vitest";
import { listen } from "../../../test/listen.js";

// Runs the lines of docs/behind-a-proxy.md, with the headers that each proxy sends for a client that forges them.

const rows = documentOf("docs/behind-a-proxy.md").rows.filter(({ under }) => under.at(-1) === "the-lines-to-write");

const client = "203.0.113.9";
const forged = "198.51.100.66";

/** What reaches the app of a request on which the client has set every header itself. */
const sent: Readonly<Record<string, Record<string, string>>> = {
  nginx: { "x-forwarded-for": `${forged}, ${client}` },
  Caddy: { "x-forwarded-for": client },
  "AWS ALB": { "x-forwarded-for": `${forged}, ${client}` },
  Cloudflare: { "x-forwarded-for": `${forged}, ${client}`, "cf-connecting-ip": client },
  Fly: { "x-forwarded-for": `${forged}, ${client}, 192.0.2.1`, "fly-client-ip": client },
  Vercel: { "x-forwarded-for": client, "x-real-ip": client },
  Heroku: { "x-forwarded-for": `${forged}, ${client}` },
  "Azure App Service": { "x-forwarded-for": `${forged}, ${client}:50123` },
  "Google Cloud Run": { "x-forwarded-for": `${forged}, ${client}` },
  "Google's load balancer": { "x-forwarded-for": `${forged}, ${client}, 192.0.2.1` },
  Render: { "x-forwarded-for": `${forged},${client}, 172.71.95.118, 10.19.64.237` },
  Railway: { "x-forwarded-for": `${forged}, ${client}`, "x-real-ip": client },
  "DigitalOcean App Platform": { "x-forwarded-for": `${forged}, 10.244.0.1`, "do-connecting-ip": client },
  "two proxies, one behind the other": { "x-forwarded-for": `${forged}, ${client}, 10.0.0.5` },
};

const names = rows.map(({ cells: [first = ""] }) => first.replace(/\[([^\]]*)\]\([^)]*\)/, "$1"));

it("every proxy of the page is tried", () => {
  expect(names).toEqual(Object.keys(sent));
});

describe.each(rows.map(({ cells }, i) => [names[i] ?? "", cells] as const))("behind %s", (name, [, ...cells]) => {
  const [first = "", ...others] = cells.map((cell) => /`([^`]+)`/.exec(cell)?.[1] ?? "");
  // "the same `clientIp`"
  const [second = "", third = ""] = others.map((line) => (line === "clientIp" ? first : line));

  it.each([
    ["Express", expressApp, first],
    ["Koa", koaApp, second],
    ["Hono", honoApp, third],
  ] as const)("the line for %s counts the client, whatever it forges", async (_, start, line) => {
    const keys: string[] = [];
    const onEvent = (event: FloodgateEvent) => {
      if (event.type === "allowed") keys.push(event.key);
      if (event.type === "warning") keys.push(event.code);
    };
    const url = await start(line, onEvent);
    const response = await fetch(url, { headers: sent[name] ?? {} });
    expect(await response.text()).toBe("hello");
    expect(keys).toEqual([client]);
  });
});

type OnEvent = (event: FloodgateEvent) => void;

/** The options in a line such as `clientIp: { trustedHops: 1 }`. The test itself is the proxy. */
function optionsIn(line: string): object {
  return line.startsWith("clientIp") ? new Function("trustedProxies", `return { ${line} }`)(["loopback"]) : {};
}

function expressApp(line: string, onEvent: OnEvent): Promise<string> {
  const app = express();
  if (line.startsWith("app.")) new Function("app", line)(app);
  app.use(expressLimit({ limit: 100, window: "1m", onEvent, ...optionsIn(line) }));
  app.get("/", (_req, res) => void res.send("hello"));
  return addressOf(createServer(app));
}

function koaApp(line: string, onEvent: OnEvent): Promise<string> {
  const app: Koa = line.startsWith("new Koa") ? new Function("Koa", `return ${line}`)(Koa) : new Koa();
  app.use(koaLimit({ limit: 100, window: "1m", onEvent, ...optionsIn(line) }));
  app.use((ctx) => {
    ctx.body = "hello";
  });
  return addressOf(createServer(app.callback()));
}

function honoApp(line: string, onEvent: OnEvent): Promise<string> {
  const app = new Hono();
  app.use(honoLimit({ limit: 100, window: "1m", onEvent, ...optionsIn(line) }));
  app.get("/", (c) => c.text("hello"));
  return addressOf(createAdaptorServer(app) as Server);
}

async function addressOf(server: Server): Promise<string> {
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${await listen(server)}/`;
}
