import { createLimiter, fixedWindow, observe } from "@floodgate/core";
import { openTelemetry } from "@floodgate/metrics/opentelemetry";
import { prometheus } from "@floodgate/metrics/prometheus";
import { memoryStore } from "@floodgate/store-memory";
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { Registry } from "prom-client";
import { serve } from "./lib/child.mjs";

/** Who listens, from the first decision of this process on. */
const listeners = {
  nobody: () => undefined,
  observe: () => observe(() => undefined),
  prometheus: () => prometheus(new Registry()),
  opentelemetry: () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 31 - 1 });
    openTelemetry({ meterProvider: new MeterProvider({ readers: [reader] }) });
  },
};

const [who] = process.argv.slice(2);
listeners[who]();

const keys = Array.from({ length: 1000 }, (_, i) => `203.0.113.${i}`);
const limits = { allowed: 1e9, denied: 1 };
const limiters = Object.fromEntries(
  Object.entries(limits).map(([name, limit]) => {
    return [name, createLimiter({ name, policy: fixedWindow({ limit, window: "365d" }), store: memoryStore() })];
  }),
);

/** Measures the CPU time of one decision, in nanoseconds. */
serve(({ kase, times }) => {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) limiters[kase].consume(keys[i % keys.length]);
  const { user, system } = process.cpuUsage(before);
  return (1000 * (user + system)) / times;
});
