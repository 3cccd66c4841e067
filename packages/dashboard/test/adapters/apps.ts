import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { rateLimit as expressLimit } from "@floodgate/express";
import { rateLimit as honoLimit } from "@floodgate/hono";
import { rateLimit as koaLimit } from "@floodgate/koa";
import { getRequestListener } from "@hono/node-server";
import express5 from "express";
import express4 from "express4";
import { Hono } from "hono";
import Koa3 from "koa";
import mount from "koa-mount";
import Koa2 from "koa2";
import { allRuns } from "../../../../test/runs.js";
import { dashboard as expressDashboard } from "../../src/express.js";
import { dashboard as honoDashboard } from "../../src/hono.js";
import { dashboard as koaDashboard } from "../../src/koa.js";

/** What the suite gives every dashboard. The request of `authorize` is the framework's own. */
export interface Options {
  readonly authorize?: (request: never) => unknown;
  readonly actions?: boolean;
  readonly showKeys?: boolean;
  readonly title?: string;
}

export interface Setup {
  readonly options?: Options;
  /** The path of the dashboard. */
  readonly path?: string;
  /** A limit of 1000 requests with this name, and whether it stands before the dashboard. */
  readonly limit?: { readonly name: string; readonly before?: boolean; readonly limit?: number };
}

export interface Running {
  readonly port: number;
  readonly server: Server;
  readonly dashboard: { close(): void };
  close(): Promise<void>;
}

/** Starts an app with a dashboard. The app answers `/` with 200, all else with 404 "the app's own 404", and errors with 500. */
export type Start = (setup: Setup) => Promise<Running>;

// A window whose end no test meets.
const limitOf = ({ name, limit = 1000 }: NonNullable<Setup["limit"]>) => ({ name, limit, window: "365d" as const });

async function listen(handler: Parameters<typeof createServer>[1], dashboard: { close(): void }): Promise<Running> {
  const server = createServer(handler as never);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): Promise<void> => {
    dashboard.close();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  return { port: (server.address() as AddressInfo).port, server, dashboard, close };
}

function expressApp(express: typeof express5): Start {
  return ({ options = {}, path = "/_floodgate", limit }) => {
    const app = express();
    const dashboard = expressDashboard(options as never);
    if (limit?.before) app.use(expressLimit(limitOf(limit)));
    app.use(path, dashboard);
    if (limit && !limit.before) app.use(expressLimit(limitOf(limit)));
    app.get("/", (_, res) => void res.send("hello"));
    app.use((_req, res) => void res.status(404).send("the app's own 404"));
    const onError: express5.ErrorRequestHandler = (error, _req, res, _next) => void res.status(500).send(`error: ${error.message}`);
    app.use(onError);
    return listen(app, dashboard);
  };
}

function koaApp(Koa: typeof Koa3, byOption: boolean): Start {
  return ({ options = {}, path = "/_floodgate", limit }) => {
    const app = new Koa();
    app.silent = true;
    const own = { ...options, ...(byOption && { path }) };
    const dashboard = koaDashboard(own as never);
    app.use(async (ctx, next) => {
      try {
        await next();
      } catch (error) {
        ctx.status = 500;
        ctx.body = `error: ${(error as Error).message}`;
      }
    });
    if (limit?.before) app.use(koaLimit(limitOf(limit)));
    app.use(byOption ? dashboard : mount(path, dashboard));
    if (limit && !limit.before) app.use(koaLimit(limitOf(limit)));
    app.use((ctx) => {
      ctx.status = ctx.path === "/" ? 200 : 404;
      ctx.body = ctx.path === "/" ? "hello" : "the app's own 404";
    });
    return listen(app.callback(), dashboard);
  };
}

const honoApp: Start = ({ options = {}, path = "/_floodgate", limit }) => {
  const app = new Hono();
  const dashboard = honoDashboard(options as never);
  if (limit?.before) app.use(honoLimit(limitOf(limit)));
  app.route(path, dashboard);
  if (limit && !limit.before) app.use(honoLimit(limitOf(limit)));
  app.get("/", (c) => c.text("hello"));
  app.notFound((c) => c.text("the app's own 404", 404));
  app.onError((error, c) => c.text(`error: ${error.message}`, 500));
  return listen(getRequestListener(app.fetch), dashboard);
};

type Named = readonly [name: string, start: Start];
const olderVersions: readonly Named[] = [
  ["Express 4", expressApp(express4 as never)],
  ["Koa 2 with a path", koaApp(Koa2 as never, true)],
];
export const apps: readonly Named[] = [
  ["Express 5", expressApp(express5)],
  ["Koa 3 with koa-mount", koaApp(Koa3, false)],
  ["Hono", honoApp],
  ...(allRuns ? olderVersions : []),
];
