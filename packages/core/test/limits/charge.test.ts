import { beforeEach, describe, expect, it, test, vi } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import {
  calendarWindow,
  createLimiter,
  type FloodgateEvent,
  fixedWindow,
  gcra,
  type Limiter,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";
import { fallback, inner, limiter, pausedMs, store, used, useFallback } from "../failure/fallback-world.js";

// Its clock stands still.
useFallback();

let events: FloodgateEvent[];
let tokens: Limiter<"sync">;
beforeEach(() => {
  events = [];
  const policy = fixedWindow({ limit: 1000, window: "1d" });
  tokens = createLimiter({
    name: "tokens",
    policy,
    store: simpleStore(),
    onEvent: (event) => event.type !== "request" && events.push(event),
  });
});

test("usage that has happened is charged, beyond the limit too, and is an event", () => {
  expect(tokens.charge("user", 400)).toBe(400);
  expect(tokens.peek("user").remaining).toBe(600);
  expect(tokens.charge("user", 5000)).toBe(5000);
  expect(tokens.consume("user").allowed).toBe(false);
  const event = { type: "charged", name: "tokens", key: "user" };
  expect(events.filter(({ type }) => type === "charged")).toEqual([
    { ...event, cost: 400, units: 400 },
    { ...event, cost: 5000, units: 5000 },
  ]);
});

test("usage of 0 changes nothing and emits no event", () => {
  expect([tokens.charge("user", 0), tokens.peek("user").used, events]).toEqual([0, 0, []]);
});

test("a blocked key is charged too", () => {
  tokens.block("user", "1h");
  expect(tokens.charge("user", 400)).toBe(400);
  tokens.unblock("user");
  expect(tokens.peek("user").used).toBe(400);
});

test("a limit of 0 has no state to charge", () => {
  const none = createLimiter({ name: "none", policy: fixedWindow({ limit: 0, window: "1d" }), store: simpleStore() });
  expect(none.charge("user", 5)).toBe(0);
});

test.each([-1, 1.5, Number.NaN, "5"])("a usage of %j is refused", (cost) => {
  expect(() => tokens.charge("user", cost as number)).toThrow("A real cost must be a whole number of at least 0");
});

test("a key by address is refused, as with consume", () => {
  expect(() => tokens.charge({ missingKeyIp: "1.2.3.4" } as never, 1)).toThrow("Write limiter.charge(String(value))");
});

test("ten million units in a log are one entry, and count until they leave the window", () => {
  const log = createLimiter({ name: "log", policy: slidingWindowLog({ limit: 100, window: "1m" }), store: simpleStore() });
  log.consume("user", { cost: 3 });
  vi.advanceTimersByTime(20_000);
  expect(log.charge("user", 10_000_000)).toBe(10_000_000);
  const { state } = log.keyState("user").states[0];
  expect(state).toMatchObject({ kind: "log", total: 10_000_003, units: [{ units: 3 }, { units: 10_000_000 }] });
  expect(log.peek("user").retryAfterMs).toBe(60_000);
});

describe("while the store is down", () => {
  const policies: readonly Policy[] = [
    fixedWindow({ limit: 100, window: "1h" }),
    calendarWindow({ limit: 100, per: "month" }),
    slidingWindowLog({ limit: 100, window: "1h" }),
    slidingWindowCounter({ limit: 100, window: "1h" }),
    tokenBucket({ capacity: 100, refill: 1, every: "1h" }),
    tokenBucket({ capacity: 100, refill: 1, every: "1h", style: "interval" }),
    gcra({ limit: 100, window: "1d" }),
    leakyBucket({ capacity: 100, leak: 1, every: "1h", maxDelayMs: 1000 }),
  ];

  it.each(policies)("the fallback counts the usage, and tells the store all of it afterwards: $stateKind", async (policy) => {
    const api = limiter(policy);
    store.fault = "rejects";
    expect(await api.charge("k", 40)).toBe(40);
    expect(await api.charge("k", 260)).toBe(260);
    expect((await api.consume("k")).allowed).toBe(false);
    store.fault = undefined;
    await vi.advanceTimersByTimeAsync(pausedMs);
    expect((await api.consume("k")).allowed).toBe(false);
    expect(used(fallback, api)).toBe(0);
    // What a limit of a thousand more would show: the debt is there.
    const { state } = await api.keyState("k").then(({ states }) => states[0]);
    const owed =
      state.kind === "bucket"
        ? -Math.floor(state.level)
        : state.kind === "queue"
          ? Math.ceil(state.length) - 100
          : state.kind === "log"
            ? state.total - 100
            : state.kind === "windows"
              ? state.windows.reduce((sum, { count }) => sum + count, -100)
              : 0;
    expect(owed).toBe(200);
  });

  it("a charge without a fallback is lost, and is an event of the store's fault", async () => {
    const faults: string[] = [];
    const onEvent = (event: FloodgateEvent) => void (event.type === "store-error" && faults.push(event.type));
    const api = createLimiter({ name: "api", policy: fixedWindow({ limit: 12, window: "1h" }), store, timeoutMs: 50, onEvent });
    store.fault = "rejects";
    expect([await api.charge("k", 5), faults, used(inner, api)]).toEqual([0, ["store-error"], 0]);
  });
});
