import { createServer } from "node:http";
import { dashboard } from "@floodgate/dashboard/hono";
import { prometheus } from "@floodgate/metrics/prometheus";
import { getRequestListener } from "@hono/node-server";
import { Hono, type MiddlewareHandler } from "hono";
import { collectDefaultMetrics, Registry } from "prom-client";
import { listen, type Part } from "../service/listen.js";
import { secretCheck } from "../service/secrets.js";
import type { Service } from "../service/service.js";
import { readinessOf } from "./readiness.js";

/** Starts the admin server: `/healthz`, `/readyz`, `/metrics` and `/dashboard`. Undefined if it is turned off. */
export async function startAdmin(service: Service): Promise<Part | undefined> {
  const { admin: address, metrics, dashboard, closeMs } = service.settings;
  if (address === false) return undefined;
  const app = new Hono();
  const readiness = readinessOf(service);
  const whenClosed: (() => void)[] = [];
  app.get("/healthz", (c) => c.json({ alive: true }));
  app.get("/readyz", async (c) => {
    const found = await readiness();
    return c.json(found, found.ready ? 200 : 503, { "Cache-Control": "no-store" });
  });
  if (metrics) whenClosed.push(addMetrics(app));
  if (dashboard) whenClosed.push(addDashboard(app, service));
  // Ends the dashboard's streams too, which would last forever.
  const closeAll = (): void => {
    for (const close of whenClosed) close();
  };
  try {
    const part = await listen(createServer(getRequestListener(app.fetch)), "admin", address, closeMs);
    const close = (): Promise<void> => {
      closeAll();
      return part.close();
    };
    return { ...part, close };
  } catch (error) {
    closeAll();
    throw error;
  }
}

/** The metrics of Floodgate and of the process. Returns a function that stops measuring. */
function addMetrics(app: Hono): () => void {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const stop = prometheus(registry);
  app.get("/metrics", async (c) => c.body(await registry.metrics(), 200, { "Content-Type": registry.contentType }));
  return () => {
    stop();
    registry.clear();
  };
}

function addDashboard(app: Hono, { settings, secrets, redis }: Service): () => void {
  const token = secrets.adminToken;
  if (token !== undefined) {
    app.use("/dashboard", requireToken(token));
    app.use("/dashboard/*", requireToken(token));
  }
  const page = dashboard({
    ...(token !== undefined && { authorize: () => true, actions: settings.dashboardActions }),
    ...(redis !== undefined && { redis, prefix: `${settings.prefix}:dashboard` }),
    showKeys: settings.logKeys === "plain",
  });
  app.route("/dashboard", page);
  app.get("/", (c) => c.redirect("/dashboard"));
  return () => page.close();
}

/** Asks for a password in the browser. The user name may be anything; `Authorization: Bearer` works too. */
function requireToken(token: string): MiddlewareHandler {
  const isToken = secretCheck([token]);
  return async (c, next) => {
    const given = givenToken(c.req.header("authorization"));
    if (given !== undefined && isToken(given)) return next();
    return c.text("The password is in the file of the setting `adminTokenFile`.\n", 401, {
      "WWW-Authenticate": 'Basic realm="Floodgate", charset="UTF-8"',
      "Cache-Control": "no-store",
    });
  };
}

/** The password of basic authentication, or a bearer token. */
function givenToken(authorization = ""): string | undefined {
  const [, scheme = "", credentials = ""] = /^(basic|bearer) +(\S+)$/i.exec(authorization) ?? [];
  if (scheme.toLowerCase() === "bearer") return credentials;
  return /:(.*)$/s.exec(Buffer.from(credentials, "base64").toString())?.[1];
}
