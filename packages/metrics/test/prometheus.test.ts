import { createLimiter, FloodgateError, fixedWindow, type Limiter } from "@floodgate/core";
import { instruments, prometheusName } from "@floodgate/metrics";
import { prometheus } from "@floodgate/metrics/prometheus";
import { memoryStore } from "@floodgate/store-memory";
import { Counter, register as globalRegistry, Registry } from "prom-client";
import { afterEach, describe, expect, it } from "vitest";
import { prometheusFigures } from "./exporters.js";

const names = Object.values(instruments).map(prometheusName);
const undo: (() => void)[] = [];
afterEach(() => {
  for (const stop of undo.splice(0)) stop();
});

function limiter(name: string): Limiter<"sync"> {
  const made = createLimiter({ name, policy: fixedWindow({ limit: 2, window: "365d" }), store: memoryStore() });
  undo.push(() => made.close());
  return made;
}

function measured(registry: Registry): () => void {
  const stop = prometheus(registry);
  undo.push(stop);
  return stop;
}

function namesIn(registry: Registry): string[] {
  return registry.getMetricsAsArray().map(({ name }) => name);
}

async function requestsIn(registry: Registry): Promise<unknown> {
  return (await prometheusFigures(registry)).requests;
}

it("measures limiters that were made before and after", async () => {
  const registry = new Registry();
  const before = limiter("before");
  measured(registry);
  before.consume("k");
  limiter("after").consume("k");
  expect(await requestsIn(registry)).toEqual({ "before allowed": 1, "after allowed": 1 });
});

it("measures into the global registry by default", () => {
  undo.push(prometheus());
  expect(namesIn(globalRegistry)).toEqual(names);
});

it("leaves the app's own metrics alone, also when it stops", async () => {
  const registry = new Registry();
  const own = new Counter({ name: "own_total", help: "The app's own.", registers: [registry] });
  measured(registry)();
  expect(namesIn(registry)).toEqual(["own_total"]);
  expect(registry.getSingleMetric("own_total")).toBe(own);
});

describe("a second call with one registry", () => {
  it("counts each request once", async () => {
    const registry = new Registry();
    measured(registry);
    measured(registry);
    limiter("once").consume("k");
    expect(await requestsIn(registry)).toEqual({ "once allowed": 1 });
  });

  it("keeps the metrics until both calls have been stopped, each of them once", async () => {
    const registry = new Registry();
    const [first, second] = [measured(registry), measured(registry)];
    first();
    first();
    limiter("kept").consume("k");
    expect(await requestsIn(registry)).toEqual({ "kept allowed": 1 });
    second();
    expect(namesIn(registry)).toEqual([]);
  });

  it("registers the metrics again if the app has cleared its registry", async () => {
    const registry = new Registry();
    measured(registry);
    limiter("cleared").consume("k");
    registry.clear();
    measured(registry);
    expect(await requestsIn(registry)).toEqual({ "cleared allowed": 1 });
  });
});

it("begins at 0 if it is started anew", async () => {
  const registry = new Registry();
  const anew = limiter("anew");
  measured(registry);
  anew.consume("k");
  undo.pop()?.();
  anew.consume("k");
  measured(registry);
  anew.consume("k");
  expect(await requestsIn(registry)).toEqual({ "anew limited": 1 });
});

it("does not listen any more when it has stopped", async () => {
  const registry = new Registry();
  const stop = measured(registry);
  const stopped = limiter("stopped");
  stopped.consume("k");
  const kept = registry.getSingleMetric(prometheusName(instruments.requests));
  stop();
  stopped.consume("k");
  const values = (await kept?.get())?.values.filter(({ value, labels }) => value > 0 && labels["rule"] === "stopped");
  expect(values).toEqual([{ value: 1, labels: { rule: "stopped", result: "allowed" } }]);
});

it("counts from 0 after the app has reset its registry", async () => {
  const registry = new Registry();
  measured(registry);
  const reset = limiter("reset");
  reset.consume("k");
  await registry.metrics();
  registry.resetMetrics();
  reset.consume("k");
  expect(await requestsIn(registry)).toEqual({ "reset allowed": 1 });
  expect((await prometheusFigures(registry)).decisionDuration).toMatchObject({ "": { count: 1 } });
});

it("may be called again in the OpenMetrics format, also after the registry was cleared", async () => {
  const registry = new Registry();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
  for (let i = 0; i < 3; i++) {
    measured(registry);
    await registry.metrics();
    expect(registry.getMetricsAsArray()).toHaveLength(names.length);
    if (i === 1) registry.clear();
  }
  for (const stop of undo.splice(0)) stop();
  expect(namesIn(registry)).toEqual([]);
});

it("writes both content types of prom-client", async () => {
  const line = 'floodgate_rate_limiting_requests_total{rule="text",result="allowed"} 1';
  for (const contentType of [Registry.PROMETHEUS_CONTENT_TYPE, Registry.OPENMETRICS_CONTENT_TYPE] as const) {
    const registry = new Registry();
    registry.setContentType(contentType as typeof Registry.PROMETHEUS_CONTENT_TYPE);
    measured(registry);
    const text = limiter("text");
    text.consume("k");
    // The second time is no different.
    for (let i = 0; i < 2; i++) expect((await registry.metrics()).split("\n")).toContain(line);
    undo.pop()?.();
    undo.pop()?.();
    expect(namesIn(registry)).toEqual([]);
  }
});

it("shows a decision of a few microseconds in a bucket of its own", () => {
  expect(instruments.decisionDuration.buckets?.[0]).toBe(0.00001);
});

describe("mistakes throw", () => {
  it.each<[string, () => unknown, string, RegExp]>([
    ["options in place of a registry", () => prometheus({ maxRules: 10 } as never), "FLOODGATE_INVALID_OPTION", /options come second/],
    ["null in place of a registry", () => prometheus(null as never), "FLOODGATE_INVALID_OPTION", /was given null/],
    ["an unknown option", () => prometheus(new Registry(), { maxRule: 1 } as never), "FLOODGATE_UNKNOWN_OPTION", /`maxRules`/],
    ["no rule at all", () => prometheus(new Registry(), { maxRules: 0 }), "FLOODGATE_INVALID_OPTION", /at least 1/],
  ])("%s", (_, call, code, message) => {
    expect(call).toThrow(FloodgateError);
    expect(call).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });

  it("a registry that has another metric with one of the names, and then it registers nothing", () => {
    const registry = new Registry();
    const name = prometheusName(instruments.warnings);
    new Counter({ name, help: "Another one.", registers: [registry] });
    expect(() => prometheus(registry)).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION" }));
    expect(namesIn(registry)).toEqual([name]);
    registry.clear();
    measured(registry);
    expect(namesIn(registry)).toEqual(names);
  });
});
