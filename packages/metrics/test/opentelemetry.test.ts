import { createLimiter, FloodgateError, fixedWindow, type Limiter } from "@floodgate/core";
import { rateLimit } from "@floodgate/hono";
import { openTelemetry } from "@floodgate/metrics/opentelemetry";
import { memoryStore } from "@floodgate/store-memory";
import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { AggregationTemporality } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { Hono } from "hono";
import { afterEach, describe, expect, it, vi } from "vitest";
import { meterProvider } from "./exporters.js";

const policy = fixedWindow({ limit: 2, window: "365d" });
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of undo.splice(0)) await stop();
});

function limiter(name: string): Limiter<"sync"> {
  const made = createLimiter({ name, policy, store: memoryStore() });
  undo.push(() => made.close());
  return made;
}

function measured(...options: Parameters<typeof openTelemetry>): () => void {
  const stop = openTelemetry(...options);
  undo.push(stop);
  return stop;
}

function provided(temporality?: AggregationTemporality): ReturnType<typeof meterProvider> {
  const made = meterProvider(temporality);
  undo.push(() => made.provider.shutdown());
  return made;
}

function setGlobal(provider: Parameters<typeof metrics.setGlobalMeterProvider>[0]): void {
  expect(metrics.setGlobalMeterProvider(provider)).toBe(true);
  undo.push(() => metrics.disable());
}

describe("the global provider", () => {
  it("may be set before", async () => {
    const { provider, read } = provided();
    setGlobal(provider);
    measured();
    limiter("api").consume("k");
    expect((await read()).requests).toEqual({ "api allowed": 1 });
  });

  it("may be set later: no count from before is lost, and durations are recorded from then on", async () => {
    measured();
    const api = limiter("api");
    api.consume("k");
    const { provider, read } = provided();
    setGlobal(provider);
    api.consume("k");
    const { requests, unitsCharged, limit, decisionDuration } = await read();
    expect(requests).toEqual({ "api allowed": 2 });
    expect(unitsCharged).toEqual({ api: 2 });
    expect(limit).toEqual({ api: 2 });
    expect(decisionDuration).toMatchObject({ "": { count: 1 } });
  });

  it("is found within a second if no request comes", async () => {
    vi.useFakeTimers();
    undo.push(() => vi.useRealTimers());
    measured();
    limiter("api").consume("k");
    const { provider, read } = provided();
    setGlobal(provider);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(1000);
    expect((await read()).requests).toEqual({ "api allowed": 1 });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is not looked for after a stop", () => {
    vi.useFakeTimers();
    undo.push(() => vi.useRealTimers());
    measured()();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a second call", () => {
  it.each<[string, (provider: object) => object[]]>([
    ["with the same provider", (meterProvider) => [{ meterProvider }, { meterProvider }]],
    ["with the global provider", () => [{}, {}]],
    ["that names the global provider", (meterProvider) => [{}, { meterProvider }]],
  ])("%s counts each request once", async (_, optionsOf) => {
    const { provider, read } = provided();
    setGlobal(provider);
    const [first, second] = optionsOf(provider).map((options) => measured(options));
    const api = limiter("api");
    api.consume("k");
    const { requests, decisionDuration } = await read();
    expect(requests).toEqual({ "api allowed": 1 });
    expect(decisionDuration).toMatchObject({ "": { count: 1 } });
    first?.();
    api.consume("k");
    expect((await read()).requests).toEqual({ "api allowed": 2 });
    second?.();
    api.consume("k");
    expect((await read()).requests).toEqual({ "api allowed": 2 });
  });
});

it("measures into two providers at once", async () => {
  const [a, b] = [provided(), provided()];
  const [stop] = [a, b].map(({ provider }) => measured({ meterProvider: provider }));
  const api = limiter("api");
  api.consume("k");
  await a.read();
  stop?.();
  api.consume("k");
  expect((await a.read()).requests).toEqual({ "api allowed": 1 });
  expect((await b.read()).requests).toEqual({ "api allowed": 2 });
});

it("reports what is new to a reader of deltas", async () => {
  const { provider, read } = provided(AggregationTemporality.DELTA);
  measured({ meterProvider: provider });
  const api = limiter("api");
  api.consume("k");
  expect((await read()).requests).toEqual({ "api allowed": 1 });
  for (let i = 0; i < 3; i++) api.consume("k");
  expect((await read()).requests).toEqual({ "api allowed": 1, "api limited": 2 });
});

describe("the active span", () => {
  /** The events of the span around a request. */
  async function eventsOf(ask: () => unknown): Promise<unknown[]> {
    const exporter = new InMemorySpanExporter();
    const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    undo.push(() => context.disable());
    await tracers.getTracer("test").startActiveSpan("request", async (span) => {
      await ask();
      span.end();
    });
    return exporter.getFinishedSpans().flatMap(({ events }) => events.map(({ name, attributes }) => ({ name, attributes })));
  }

  const marked = (rule: string, result: string) => ({
    name: "floodgate.rate_limiting",
    attributes: { "floodgate.rate_limiting.rule": rule, "floodgate.rate_limiting.result": result },
  });

  it("of a limited request has an event with the rule and the result, and without the key", async () => {
    measured({ meterProvider: provided().provider });
    const api = limiter("api");
    expect(await eventsOf(() => [1, 2, 3].map(() => api.consume("secret-key")))).toEqual([marked("api", "limited")]);
  });

  it("is that of the request when the store answers later", async () => {
    measured({ meterProvider: provided().provider });
    const sync = memoryStore();
    const store = new Proxy(sync, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown;
        if (name === "mode") return "async";
        return typeof value === "function" ? async (...args: unknown[]) => value.apply(target, args) : value;
      },
    });
    const middleware = rateLimit({
      name: "later",
      policy: fixedWindow({ limit: 1, window: "365d" }),
      key: "global",
      store: store as never,
    });
    undo.push(() => middleware.close());
    const app = new Hono().get("/", middleware, (c) => c.text("ok"));
    expect(await eventsOf(() => app.request("/"))).toEqual([]);
    expect(await eventsOf(() => app.request("/"))).toEqual([marked("later", "limited")]);
  });

  it("has one for a rule in shadow mode, and for a missing key that is rejected", async () => {
    measured({ meterProvider: provided().provider });
    const none = fixedWindow({ limit: 0, window: "365d" });
    const shadow = rateLimit({ name: "shadow", policy: none, key: "global", mode: "shadow", onEvent: () => undefined });
    const keyed = rateLimit({ name: "keyed", policy, key: () => undefined, onMissingKey: "reject" });
    const skipping = rateLimit({ name: "skipping", policy, key: () => undefined, onMissingKey: "skip" });
    for (const { close } of [shadow, keyed, skipping]) undo.push(close);
    const app = new Hono().use(shadow, skipping, keyed);
    expect(await eventsOf(() => app.request("/"))).toEqual([marked("shadow", "shadow-limited"), marked("keyed", "missing-key")]);
  });

  it("need not exist", () => {
    measured({ meterProvider: provided().provider });
    const api = limiter("api");
    for (let i = 0; i < 3; i++) api.consume("k");
    expect(trace.getActiveSpan()).toBeUndefined();
  });
});

describe("mistakes throw", () => {
  it.each<[string, unknown, string, RegExp]>([
    ["a provider without getMeter", { meterProvider: {} }, "FLOODGATE_INVALID_OPTION", /`meterProvider` must be a MeterProvider/],
    ["an unknown option", { provider: {} }, "FLOODGATE_UNKNOWN_OPTION", /`provider`/],
    ["a provider in place of options", provided().provider, "FLOODGATE_UNKNOWN_OPTION", /meterProvider/],
    ["a fraction of a rule", { maxRules: 1.5 }, "FLOODGATE_INVALID_OPTION", /`maxRules`/],
  ])("%s", (_, options, code, message) => {
    const call = () => openTelemetry(options as never);
    expect(call).toThrow(FloodgateError);
    expect(call).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });
});
