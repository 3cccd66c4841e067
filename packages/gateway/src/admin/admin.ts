import { createServer } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import type { Part } from "../part.js";
import { listen } from "../service/listen.js";
import type { Service } from "../service/service.js";

/** Starts the admin server: `/healthz`, `/readyz`, `/metrics` and the dashboard. */
export async function startAdmin(service: Service, address: string): Promise<Part> {
  const app = new Hono();
  app.get("/healthz", (c) => c.json({ alive: true }));
  const listening = await listen(createServer(getRequestListener(app.fetch)), address, "admin");
  return { name: "admin", address: listening.address, url: listening.url, close: () => listening.close(service.settings.closeMs) };
}
