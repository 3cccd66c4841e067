import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { rateLimit as expressLimit, fixedWindow, leakyBucket } from "@floodgate/express";
import { rateLimit as honoLimit } from "@floodgate/hono";
import { rateLimit as koaLimit } from "@floodgate/koa";
import { memoryStore } from "@floodgate/store-memory";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";
import Koa from "koa";
import mount from "koa-mount";
import { dashboard as expressDashboard } from "../../src/express.js";
import { dashboard as honoDashboard } from "../../src/hono.js";
import { dashboard as koaDashboard } from "../../src/koa.js";

export interface App {
  readonly port: number;
  /** Sends requests one after the other, and answers their statuses. */
  send(count: number, headers?: Record<string, string>, path?: string): Promise<number[]>;
  close(): Promise<void>;
}

/** Its clock stands still, so that no window ends while a test counts. */
const stillStore = () => memoryStore({ clock: () => 1_800_000_000_000 });

export const frameworks: Readonly<Record<string, (rule: string, limit: number, port?: number) => Promise<App>>> = {
  Express: (name, limit, port = 0) => {
    const app = express();
    const page = expressDashboard();
    app.use("/_floodgate", page);
    app.use(expressLimit({ name, policy: fixedWindow({ limit, window: "1h" }), store: stillStore() }));
    app.get("/", (_req, res) => void res.send("hello"));
    return listen(app, page, port);
  },
  Koa: (name, limit, port = 0) => {
    const app = new Koa();
    // A page that is closed is no error of the app; a connection that the browser resets is one to Koa, whatever the app sends.
    app.on("error", (error) => {
      if (error.code !== "ECONNRESET") throw error;
    });
    const page = koaDashboard();
    app.use(mount("/_floodgate", page));
    app.use(koaLimit({ name, policy: fixedWindow({ limit, window: "1h" }), store: stillStore() }));
    app.use((ctx) => {
      ctx.body = "hello";
    });
    return listen(app.callback(), page, port);
  },
  Hono: (name, limit, port = 0) => {
    const app = new Hono();
    const page = honoDashboard();
    app.route("/_floodgate", page);
    app.use(honoLimit({ name, policy: fixedWindow({ limit, window: "1h" }), store: stillStore() }));
    app.get("/", (c) => c.text("hello"));
    return listen(getRequestListener(app.fetch), page, port);
  },
};

/** An app with two rules in one middleware, one in another, a ban, and a path whose store fails. */
export function stackedApp(): Promise<App> {
  const app = express();
  const page = expressDashboard({ authorize: () => true, showKeys: true });
  const per = (limit: number) => fixedWindow({ limit, window: "1h" });
  const key = "header:x-key";
  const store = stillStore();
  const away = Object.assign(stillStore(), {
    consume() {
      throw new Error("away");
    },
  });
  app.use("/_floodgate", page);
  app.use("/away", expressLimit({ name: "away", key, policy: per(9), store: away, onStoreError: "deny", onEvent: () => undefined }));
  app.use(
    expressLimit({
      store,
      rules: [
        { name: "wide", key, policy: per(9), match: { path: "/" } },
        { name: "narrow", key, policy: per(5), match: { path: "/" }, ban: { after: 3, within: "1h", for: "1h" } },
      ],
    }),
    expressLimit({ rules: [{ name: "last", key, policy: per(4), match: { path: "/" } }], store }),
  );
  app.get("/", (_req, res) => void res.send("hello"));
  return listen(app, page);
}

/** An app with each kind of limit, keys that a header sets, and buttons to act. */
export function fullApp(names: { readonly window: string; readonly queue: string; readonly shadow: string }): Promise<App> {
  const app = express();
  const page = expressDashboard({ authorize: () => true, actions: true, showKeys: true, title: "<b>Shop</b>" });
  const key = (req: express.Request) => req.get("x-key");
  app.use("/_floodgate", page);
  app.use(
    expressLimit({
      store: stillStore(),
      rules: [
        { name: names.window, key, policy: fixedWindow({ limit: 3, window: "1h" }) },
        {
          name: names.queue,
          key: "ip",
          match: { path: "/<img src=x onerror=alert`1`>" },
          policy: leakyBucket({ capacity: 4, leak: 1, every: "1h" }),
        },
        { name: names.shadow, key: "header:x-key", policy: fixedWindow({ limit: 1, window: "1h" }), mode: "shadow" },
      ],
    }),
  );
  app.get("/", (_req, res) => void res.send("hello"));
  return listen(app, page);
}

function listen(handler: unknown, dashboard: { close(): void }, port = 0): Promise<App> {
  const server = createServer(handler as never);
  const portOf = () => (server.address() as AddressInfo).port;
  const app: Omit<App, "port"> = {
    async send(count, headers = {}, path = "/") {
      const statuses: number[] = [];
      for (let i = 0; i < count; i++) {
        const response = await fetch(`http://127.0.0.1:${portOf()}${path}`, { headers });
        await response.arrayBuffer();
        statuses.push(response.status);
      }
      return statuses;
    },
    close() {
      dashboard.close();
      // The streams end first.
      setImmediate(() => server.closeAllConnections());
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve({ ...app, port: portOf() })));
}
