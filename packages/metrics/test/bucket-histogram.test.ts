import { createLimiter, fixedWindow } from "@floodgate/core";
import { prometheus } from "@floodgate/metrics/prometheus";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { AggregatorRegistry, Histogram, type Metric, Registry } from "prom-client";
import { expect, it } from "vitest";
import { BucketHistogram } from "../src/bucket-histogram.js";

const config = { name: "seconds", help: 'Says "how long".\nIn seconds.' };
const bounds = [0.00001, 0.5, 1, 30];
const value = fc.oneof(fc.constantFrom(...bounds, 0), fc.double({ min: 0, max: 100, noNaN: true }));

it("a registry shows it as it shows a histogram of prom-client with the same values", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ rule: fc.constantFrom("a", 'b"\\'), value })), fc.boolean(), async (values, hasDefaults) => {
      const [ours, theirs] = [new Registry(), new Registry()];
      if (hasDefaults) for (const registry of [ours, theirs]) registry.setDefaultLabels({ app: "shop" });
      const histogram = new Histogram({ ...config, labelNames: ["rule"], buckets: bounds, registers: [theirs] });
      const fast = new BucketHistogram({ ...config, bounds });
      ours.registerMetric(fast as unknown as Metric);
      const recorders = new Map<string, (value: number) => void>();
      for (const { rule, value } of values) {
        histogram.observe({ rule }, value);
        const record = recorders.get(rule) ?? fast.recorder({ rule });
        recorders.set(rule, record);
        record(value);
      }
      const sorted = (text: string) => text.replace(/\{.*\}/g, (labels) => `{${labels.slice(1, -1).split(",").sort()}}`);
      expect(sorted(await ours.metrics())).toBe(sorted(await theirs.metrics()));
      const plain = async (registry: Registry) => {
        const [metric] = JSON.parse(JSON.stringify(await registry.getMetricsAsJSON()));
        return { ...metric, values: metric.values.map((sample: { exemplar?: unknown }) => ({ ...sample, exemplar: undefined })) };
      };
      expect(await plain(ours)).toEqual(await plain(theirs));
    }),
  );
});

it("the workers of a cluster add up, and a limit is the same in each", async () => {
  const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 7, window: "365d" }), store: memoryStore() });
  const workers = [new Registry(), new Registry()];
  const stops = workers.map((registry) => prometheus(registry));
  for (let i = 0; i < 3; i++) limiter.consume("k");
  const lines = await Promise.all(workers.map((registry) => registry.getMetricsAsJSON()));
  const text = (await AggregatorRegistry.aggregate(lines).metrics()).split("\n");
  for (const stop of stops) stop();
  limiter.close();
  expect(text).toEqual(
    expect.arrayContaining([
      'floodgate_rate_limiting_requests_total{rule="api",result="allowed"} 6',
      'floodgate_rate_limiting_limit{rule="api"} 7',
      "floodgate_rate_limiting_keys 2",
      "floodgate_rate_limiting_decision_duration_seconds_count 6",
      'floodgate_rate_limiting_decision_duration_seconds_bucket{le="+Inf"} 6',
    ]),
  );
});
