import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  leakyBucket,
  observe,
  type Policy,
  tokenBucket,
} from "@floodgate/core";
import type { Store } from "@floodgate/core/store";
import { rateLimit } from "@floodgate/hono";
import { type LiveRules, liveRules } from "@floodgate/rules";
import { memoryStore } from "@floodgate/store-memory";
import { Hono, type MiddlewareHandler } from "hono";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Exporters, type Figures, startExporters } from "./exporters.js";

let exporters: Exporters;
const undo: (() => unknown)[] = [];
beforeEach(() => {
  exporters = startExporters();
});
afterEach(async () => {
  for (const close of undo.splice(0)) close();
  await exporters.stop();
});

/** The figures, which are the same in both exporters. */
async function figures(): Promise<Figures> {
  const figures = await exporters.openTelemetry();
  expect(await exporters.prometheus()).toEqual(figures);
  return figures;
}

function limiter(name: string, policy: Policy, store: Store<"sync"> = memoryStore()): Limiter<"sync"> {
  const made = createLimiter({ name, policy, store });
  undo.push(() => made.close());
  return made;
}

describe("limit and window", () => {
  it.each<[string, Policy, number, number]>([
    ["a window", fixedWindow({ limit: 100, window: "1m" }), 100, 60],
    ["a bucket", tokenBucket({ capacity: 20, refill: 10, every: "1s" }), 20, 2],
    ["a queue", leakyBucket({ capacity: 10, leak: 5, every: "1s" }), 10, 2],
    ["a burst", gcra({ limit: 100, window: "1m", burst: 20 }), 20, 12],
  ])("are those of %s", async (_, policy, limit, window) => {
    limiter("api", policy);
    expect(await figures()).toMatchObject({ limit: { api: limit }, window: { api: window } });
  });

  it("are the smaller limit and the longer window of two limits with one name", async () => {
    limiter("api", fixedWindow({ limit: 100, window: "1m" }));
    limiter("api", fixedWindow({ limit: 70, window: "1s" }));
    expect(await figures()).toMatchObject({ limit: { api: 70 }, window: { api: 60 } });
  });

  it("of a rule with plans are those of keys without a plan, and a policy function has none", async () => {
    const policy = fixedWindow({ limit: 10, window: "1m" });
    const plans = rateLimit({ name: "plans", policy, key: "global", plan: () => "pro", plans: { pro: { limit: 1000 } } });
    const varying = rateLimit({ name: "varying", policy: () => policy, key: "global" });
    undo.push(
      () => plans.close(),
      () => varying.close(),
    );
    expect((await figures()).limit).toEqual({ plans: 10 });
  });

  it("disappear from Prometheus with the limiter", async () => {
    limiter("gone", fixedWindow({ limit: 100, window: "1m" })).close();
    expect((await exporters.prometheus()).limit).toBeUndefined();
  });
});

it("shadow says of each rule whether it is in shadow mode, whatever its policy; of two with one name, whether both are", async () => {
  const policy = fixedWindow({ limit: 10, window: "1m" });
  const rules = [
    rateLimit({ name: "trial", policy: () => policy, key: "global", mode: "shadow" }),
    rateLimit({ name: "half", policy, key: "global", mode: "shadow" }),
    rateLimit({ name: "half", policy, key: "global" }),
  ];
  undo.push(...rules.map((rule) => () => rule.close()));
  limiter("api", policy);
  const { shadow = {} } = await figures();
  // Zeros are left out of figures.
  expect(shadow).toEqual({ trial: 1 });
  expect(await exporters.registry.metrics()).toContain('floodgate_rate_limiting_shadow{rule="half"} 0');
});

it("keys are those that all memory stores hold", async () => {
  const policy = fixedWindow({ limit: 100, window: "365d" });
  const [a, b] = [limiter("a", policy), limiter("b", policy)];
  for (const key of ["x", "y"]) a.consume(key);
  b.consume("z");
  expect((await figures()).keys).toEqual({ "": 3 });
});

it("the gauge of slots counts what requests in flight hold, by rule, and is 0 without such requests", async () => {
  const uploads = limiter("uploads", concurrency({ limit: 3, hold: "30s" }));
  const zero = 'floodgate_rate_limiting_slots_held{rule="uploads"} 0';
  expect(await exporters.registry.metrics()).toContain(zero);
  const ends: (() => void)[] = [];
  const runs = ["a", "a", "b"].map((key) => uploads.run(key, () => new Promise<void>((resolve) => ends.push(resolve))));
  await vi.waitFor(() => expect(ends).toHaveLength(3));
  expect((await figures()).slotsHeld).toEqual({ uploads: 3 });
  ends[0]?.();
  await runs[0];
  expect((await figures()).slotsHeld).toEqual({ uploads: 2 });
  for (const end of ends) end();
  await Promise.all(runs);
  expect(await exporters.registry.metrics()).toContain(zero);
});

it("evictions are counted by rule", async () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const store = memoryStore({ maxKeys: 10, clock: () => nowMs });
  const full = limiter("full", fixedWindow({ limit: 100, window: "365d" }), store);
  for (let i = 0; i < 25; i++) full.consume(`k${i}`);
  const { evictions, keys } = await figures();
  expect(keys).toEqual({ "": store.size });
  expect(evictions).toEqual({ full: 25 - (store.size as number) });
});

it("breakers are counted by state, and the errors of stores by code", async () => {
  const store = failingStore();
  const api = createLimiter({ name: "api", policy: fixedWindow({ limit: 100, window: "365d" }), store, onEvent: () => undefined });
  undo.push(() => api.close());
  for (let i = 0; i < 5; i++) expect((await api.consume("k")).degraded).toBe(true);
  const { breakers, breakerTransitions, storeErrors, requests } = await figures();
  expect(breakers).toEqual({ open: 1 });
  expect(breakerTransitions).toEqual({ open: 1 });
  expect(storeErrors).toEqual({ other: 5 });
  expect(requests).toEqual({ "api failed-open": 5 });
});

it("breakers of a store with several servers are counted by server", async () => {
  const store = failingStore((key) => `10.0.0.${key}:7000`);
  const api = createLimiter({ name: "api", policy: fixedWindow({ limit: 100, window: "365d" }), store, onEvent: () => undefined });
  undo.push(() => api.close());
  for (let i = 0; i < 5; i++) await api.consume("1");
  await api.consume("2");
  const { breakers, breakerTransitions } = await figures();
  expect(breakers).toEqual({ "open 10.0.0.1:7000": 1, "closed 10.0.0.2:7000": 1 });
  expect(breakerTransitions).toEqual({ "open 10.0.0.1:7000": 1 });
});

describe("live rules", () => {
  const rule = (limit: number) => JSON.stringify({ rules: [{ name: "live", key: "global", limit, window: "1m" }] });
  let text = rule(1);
  let changed: () => void = () => undefined;
  let rules: LiveRules;

  async function becomes(next: string): Promise<void> {
    text = next;
    changed();
    await vi.advanceTimersByTimeAsync(0);
  }

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    text = rule(1);
    const read = async () => ({ text, version: `v${JSON.parse(text).rules?.[0].limit}` });
    const watch = (tell: () => void) => {
      changed = tell;
      return () => undefined;
    };
    rules = await liveRules({ source: "limits.yaml", read, watch }, { onEvent: () => undefined });
    const middleware = rateLimit({ rules });
    undo.push(
      () => middleware.close(),
      () => rules.close(),
      () => vi.useRealTimers(),
    );
  });

  it("are counted by version, and the version before is no longer in use", async () => {
    expect((await figures()).rulesVersions).toEqual({ v1: 1 });
    await becomes(rule(2));
    expect(rules.version).toBe("v2");
    const now = await figures();
    expect(now.rulesVersions).toEqual({ v2: 1 });
    expect(now.rulesReloads).toEqual({ accepted: 1 });
    expect(now.limit).toMatchObject({ live: 2 });
    expect((await figures()).rulesVersions).toEqual({ v2: 1 });
  });

  it("count a refused version, until a good one is in force", async () => {
    await becomes(rule(-1));
    const refused = await figures();
    expect(refused.rulesRefused).toEqual({ "": 1 });
    expect(refused.rulesReloads).toEqual({ refused: 1 });
    expect(refused.rulesVersions).toEqual({ v1: 1 });
    await becomes(rule(3));
    expect((await figures()).rulesRefused).toBeUndefined();
  });
});

/** A store whose every answer is a fault. */
/** @param shardOf the server of a key, for a store with several. */
function failingStore(shardOf?: (key: string) => string): Store<"async"> {
  const away = async () => {
    throw new Error("away");
  };
  const get = (store: Store, name: keyof Store) =>
    name === "mode" ? "async" : name === "shardOf" ? shardOf : typeof store[name] === "function" ? away : store[name];
  return new Proxy<Store>(memoryStore(), { get: (store, name) => get(store, name as keyof Store) }) as Store<"async">;
}

it("an exporter that begins in the middle of a request takes back nothing that it has not counted", async () => {
  await exporters.stop();
  const first = rateLimit({ name: "first", key: "global", limit: 9, window: "1h" });
  const second = rateLimit({ name: "second", key: "header:x-key", onMissingKey: "reject", limit: 9, window: "1h" });
  undo.push(
    () => first.close(),
    () => second.close(),
    observe(() => undefined),
  );
  const begin: MiddlewareHandler = async (_, next) => {
    exporters = startExporters();
    await next();
  };
  const app = new Hono().get("/begins", first, begin, second).get("/", first, (c) => c.text("ok"));
  const statuses: number[] = [];
  for (const path of ["/begins", "/", "/"]) statuses.push((await app.request(path)).status);
  expect(statuses).toEqual([429, 200, 200]);
  expect((await figures()).outcomes).toEqual({ "first allowed": 2, "second missing-key": 1 });
});
