import { createServer, type Server } from "node:http";
import type { RateLimitOptions } from "@floodgate/core/adapter";
import { rateLimit as expressLimit } from "@floodgate/express";
import { rateLimit as honoLimit } from "@floodgate/hono";
import { rateLimit as koaLimit } from "@floodgate/koa";
import { createAdaptorServer } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import Koa from "koa";
import { listen as listenOn } from "../../../test/listen.js";

/** The framework-independent part of an app. */
export type Limits = RateLimitOptions<unknown>;

export type Framework = "Express" | "Koa" | "Hono";

/** An app behind a limit. */
export interface App {
  /** Does not listen yet. */
  readonly server: Server;
  /** Closes the limit, which releases held requests. */
  release(): void;
}

export const appOf: Readonly<Record<Framework, (limits: Limits) => App>> = {
  Express(limits) {
    const limit = expressLimit(limits);
    const app = express();
    app.use(limit);
    app.use((_request, response) => {
      response.send("ok");
    });
    return { server: createServer(app), release: () => limit.close() };
  },
  Koa(limits) {
    const limit = koaLimit(limits);
    const app = new Koa();
    app.use(limit);
    app.use((ctx) => {
      ctx.body = "ok";
    });
    return { server: createServer(app.callback()), release: () => limit.close() };
  },
  Hono(limits) {
    const limit = honoLimit(limits);
    const app = new Hono();
    app.use(limit);
    app.all("*", (c) => c.text("ok"));
    return { server: createAdaptorServer(app) as Server, release: () => limit.close() };
  },
};

/** Starts a server on a free port of 127.0.0.1, and returns the port. */
export function listen(server: Server): Promise<number> {
  // If the server closed an idle connection while a request is in flight, that request would be lost.
  server.keepAliveTimeout = 0;
  return listenOn(server);
}

export function close(server: Server): void {
  server.close();
  server.closeAllConnections();
}
