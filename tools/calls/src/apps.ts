import type { RequestListener } from "node:http";
import { tokenBucket } from "@floodgate/core";
import type { RateLimitOptions } from "@floodgate/core/adapter";
import { rateLimit as expressLimit } from "@floodgate/express";
import { rateLimit as honoLimit } from "@floodgate/hono";
import { rateLimit as koaLimit } from "@floodgate/koa";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import Koa from "koa";

type Options = RateLimitOptions<unknown>;

/** Each case makes its own middleware. */
const limits: Readonly<Record<string, (limit: number) => Options>> = {
  "one line": (limit) => ({ limit, window: "1h" }),
  "three rules with a ban": (limit) => ({
    rules: [
      { name: "global", key: "global", policy: tokenBucket({ capacity: 1e6, refill: 1e6, every: "1s" }) },
      { name: "per-ip", key: "ip", limit, window: "1h", ban: { after: 1000, within: "1m", for: "1h" } },
      { name: "root", match: { method: "GET", path: "/" }, key: "ip", limit: 1e6, window: "1h" },
    ],
  }),
};

const frameworks: Readonly<Record<string, (options: Options) => RequestListener>> = {
  express(options) {
    const app = express();
    app.use(expressLimit(options as Parameters<typeof expressLimit>[0]));
    app.get("/", (_, response) => {
      response.end("hello");
    });
    return app;
  },
  koa(options) {
    const app = new Koa();
    app.use(koaLimit(options as Parameters<typeof koaLimit>[0]));
    app.use((ctx) => {
      ctx.body = "hello";
    });
    return app.callback();
  },
  hono(options) {
    const app = new Hono();
    app.use(honoLimit(options as Parameters<typeof honoLimit>[0]));
    app.get("/", (c) => c.text("hello"));
    return getRequestListener(app.fetch);
  },
};

/** A request to count: an app, and the expected status of the warm request. */
export interface Case {
  readonly status: number;
  make(): RequestListener;
}

/** All cases, by name. */
export const cases: ReadonlyMap<string, Case> = new Map(
  Object.entries(frameworks).flatMap(([framework, appOf]) =>
    Object.entries(limits).flatMap(([what, optionsOf]): [string, Case][] => [
      [`${framework}, ${what}, allowed`, { status: 200, make: () => appOf(optionsOf(1e6)) }],
      [`${framework}, ${what}, denied`, { status: 429, make: () => appOf(optionsOf(1)) }],
    ]),
  ),
);
