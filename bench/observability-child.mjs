import { createWriteStream } from "node:fs";
import { createServer, get } from "node:http";
import { createLimiter, observe, slidingWindowCounter } from "@floodgate/core";
import { dashboard } from "@floodgate/dashboard/express";
import { rateLimit } from "@floodgate/express";
import { decisionLog } from "@floodgate/metrics/decisions";
import { openTelemetry } from "@floodgate/metrics/opentelemetry";
import { prometheus } from "@floodgate/metrics/prometheus";
import { memoryStore } from "@floodgate/store-memory";
import { metrics } from "@opentelemetry/api";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import express from "express";
import { answer, neverReached } from "./http/common.mjs";
import { addedSince, cpuUs, heldMemory, serve } from "./lib/child.mjs";
import { injector } from "./lib/inject.mjs";
import { clientKey } from "./lib/subjects.mjs";

const [kind] = process.argv.slice(2);

if (kind === "observe") observe(() => undefined);
if (kind === "log") decisionLog(createWriteStream("/dev/null"));
if (kind === "prometheus") prometheus();
if (kind === "opentelemetry") {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  metrics.setGlobalMeterProvider(
    new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 10_000 })] }),
  );
  openTelemetry();
}

const app = express();
if (kind.startsWith("dashboard")) app.use("/_floodgate", dashboard());
app.use(rateLimit({ limit: neverReached, window: "1h" }));
app.get("/", (_req, res) => {
  res.json(answer);
});
const limiter = createLimiter({
  name: "bare",
  policy: slidingWindowCounter({ limit: neverReached, window: "1h" }),
  store: memoryStore(),
});

if (kind === "dashboard open") await open();

/** Follows the dashboard's stream of events, as its page does. */
async function open() {
  const server = createServer(app).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const response = await new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port: server.address().port, path: "/_floodgate/data/live" }, resolve).on("error", reject);
  });
  if (response.statusCode !== 200) throw new Error(`The dashboard's stream answered ${response.statusCode}`);
  await new Promise((resolve) => response.once("data", resolve));
  response.resume();
}

const keys = Array.from({ length: 1000 }, (_, i) => clientKey(i));
const inject = injector(app, { headers: { host: "bench" } });

const work = {
  async requests(count) {
    for (let i = 0; i < count; i++) {
      const status = await inject();
      if (status !== 200) throw new Error(`A request was answered ${status}`);
    }
  },
  decisions(count) {
    for (let i = 0; i < count; i++) if (!limiter.consume(keys[i % keys.length]).allowed) throw new Error("A decision was denied");
  },
};

/** Limits distinct keys, in batches between which timers run, and says how much memory has been added. */
async function memory(count) {
  const before = heldMemory();
  for (let i = 0; i < count; i++) {
    limiter.consume(clientKey(i));
    if (i % 10_000 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await new Promise((resolve) => setTimeout(resolve, 2500));
  return addedSince(before);
}

serve(async ({ what, count }) => {
  if (what === "memory") return memory(count);
  const startUs = cpuUs();
  const start = process.hrtime.bigint();
  await work[what](count);
  return { cpuNs: ((cpuUs() - startUs) * 1000) / count, wallNs: Number(process.hrtime.bigint() - start) / count };
});
