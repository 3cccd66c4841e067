import { createHash, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { dashboard } from "@floodgate/dashboard/hono";
import { prometheus } from "@floodgate/metrics/prometheus";
import { getRequestListener } from "@hono/node-server";
import { Hono, type MiddlewareHandler } from "hono";
import { collectDefaultMetrics, Registry } from "prom-client";
import { listen, type Part } from "../service/listen.js";
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
  return async (c, next) => {
    if (hasToken(c.req.header("authorization"), token)) return next();
    return c.text("The password is in the file of the setting `adminTokenFile`.\n", 401, {
      "WWW-Authenticate": 'Basic realm="Floodgate", charset="UTF-8"',
      "Cache-Control": "no-store",
    });
  };
}

/** Whether a header holds a token, as the password of basic authentication or as a bearer token. */
function hasToken(authorization: string | undefined, token: string): boolean {
  const [, scheme = "", credentials = ""] = /^(basic|bearer) +(\S+)$/i.exec(authorization ?? "") ?? [];
  if (scheme.toLowerCase() === "bearer") return isEqual(credentials, token);
  const pair = Buffer.from(credentials, "base64").toString();
  const colon = pair.indexOf(":");
  return colon >= 0 && isEqual(pair.slice(colon + 1), token);
}

/** Compares in a time that says nothing about the secret. */
function isEqual(given: string, secret: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(secret));
}
