import { createServer } from "node:http";
import { reasonOf } from "@floodgate/core/adapter";
import { dashboard } from "@floodgate/dashboard/hono";
import { prometheus } from "@floodgate/metrics/prometheus";
import { getRequestListener } from "@hono/node-server";
import { Hono, type MiddlewareHandler } from "hono";
import { collectDefaultMetrics, Registry } from "prom-client";
import { inOwnWords } from "../service/limit.js";
import { listen, type RunningServer } from "../service/listen.js";
import { whyUndecided } from "../service/redis.js";
import { secretCheck } from "../service/secrets.js";
import type { Service } from "../service/service.js";

/** Starts the admin server: `/healthz`, `/readyz`, `/metrics` and `/dashboard`. Undefined if it is turned off. */
export async function startAdmin(service: Service): Promise<RunningServer | undefined> {
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
  // Probes of HTTP/1.0 name no host, those of HAProxy and F5 for example.
  const listener = getRequestListener(app.fetch, { hostname: "localhost" });
  const server = await listen(createServer(listener), "admin", address, closeMs).catch((error) => {
    closeAll();
    throw error;
  });
  const close = (): Promise<void> => {
    closeAll();
    return server.close();
  };
  return { ...server, close };
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

const closed =
  "The dashboard answers browsers on this machine only, and nobody if NODE_ENV is production. Set `adminTokenFile`, and it asks for that password.";

function addDashboard(app: Hono, { settings, secrets, redis }: Service): () => void {
  const token = secrets.adminToken;
  // The address of the page itself too.
  if (token !== undefined) app.use("/dashboard/*", requireToken(token));
  const options = {
    ...(token !== undefined && { authorize: () => true, actions: settings.dashboardActions }),
    ...(redis !== undefined && { redis, prefix: `${settings.prefix}:dashboard` }),
    showKeys: settings.logKeys === "plain",
  };
  const page = dashboard(options, closed);
  app.route("/dashboard", page);
  // What the dashboard has not answered.
  if (token === undefined) app.get("/dashboard", (c) => c.text(`${closed}\n`, 404));
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

/** How long Redis may take to answer: longer than a decision, because a slow answer is no reason to take a service out. */
const answerMs = 1000;

/** An answer of Redis counts for this long, so that many probes ask it once. */
const freshMs = 1000;

/** Makes a function that finds out whether a service should get requests: why not (`reasons`), and what is wrong although it should (`notes`). */
function readinessOf(service: Service): () => Promise<{ ready: boolean; reasons: string[]; notes: string[] }> {
  let asked: { readonly atMs: number; readonly why: Promise<string | undefined> } | undefined;
  const whyNoRedis = async (): Promise<string | undefined> => {
    const { redis, settings } = service;
    if (redis === undefined) return undefined;
    // A monotonic clock, because probes go on when the machine's clock is set.
    const nowMs = performance.now();
    if (asked === undefined || nowMs - asked.atMs > freshMs) {
      asked = { atMs: nowMs, why: whyUndecided(redis, `${settings.prefix}:readyz`, answerMs) };
    }
    return asked.why;
  };
  return async () => {
    const { draining, rules, settings } = service;
    const reasons: string[] = [];
    const notes: string[] = [];
    if (draining) reasons.push("It is draining.");
    if (rules.missing !== undefined) reasons.push(`There are no rules yet: ${rules.missing}`);
    const why = await whyNoRedis();
    if (why !== undefined) (settings.readyWithoutRedis ? notes : reasons).push(why);
    if (rules.live?.refused !== undefined) {
      notes.push(
        `The newest rules were refused, and the previous ones are in force: ${inOwnWords(reasonOf(rules.live.refused.error).why)}`,
      );
    }
    return { ready: reasons.length === 0, reasons, notes };
  };
}
