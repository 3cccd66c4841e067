import { prometheus } from "@floodgate/metrics/prometheus";
import type { Hono } from "hono";
import { collectDefaultMetrics, Registry } from "prom-client";

/** Adds `/metrics`: the metrics of Floodgate and of the process. Returns a function that stops measuring. */
export function addMetrics(app: Hono): () => void {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const stop = prometheus(registry);
  app.get("/metrics", async (c) => c.body(await registry.metrics(), 200, { "Content-Type": registry.contentType }));
  return () => {
    stop();
    registry.clear();
  };
}
