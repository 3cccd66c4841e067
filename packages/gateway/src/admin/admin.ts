import { createServer } from "node:http";
import { dashboard } from "@floodgate/dashboard/hono";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { listen } from "../service/listen.js";
import type { Part } from "../service/part.js";
import type { Service } from "../service/service.js";
import { addMetrics } from "./metrics.js";
import { ReadinessCheck } from "./readiness.js";
import { requireToken } from "./token.js";

/** Starts the admin server: `/healthz`, `/readyz`, `/metrics` and `/dashboard`. */
export async function startAdmin(service: Service, address: string): Promise<Part> {
  const { settings } = service;
  const app = new Hono();
  const readiness = new ReadinessCheck(service);
  const whenClosed: (() => void)[] = [];
  app.get("/healthz", (c) => c.json({ alive: true }));
  app.get("/readyz", async (c) => {
    const found = await readiness.read();
    return c.json(found, found.ready ? 200 : 503, { "Cache-Control": "no-store" });
  });
  if (settings.metrics) whenClosed.push(addMetrics(app));
  if (settings.dashboard) whenClosed.push(addDashboard(app, service));
  const server = createServer(getRequestListener(app.fetch));
  try {
    const listening = await listen(server, address, "admin");
    return {
      name: "admin",
      address: listening.address,
      url: listening.url,
      close: async () => {
        // Ends the dashboard's streams, which would last forever.
        for (const close of whenClosed) close();
        await listening.close(settings.closeMs);
      },
    };
  } catch (error) {
    for (const close of whenClosed) close();
    throw error;
  }
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
