import { describe, expect, it } from "vitest";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import {
  calendarWindow,
  concurrency,
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  type Limiter,
  leakyBucket,
  type Policy,
  type StateView,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";
import { FaultyStore, fault } from "../faulty-store.js";

const startMs = 1_789_948_800_000;

/** A limiter whose clock one sets. */
function world(policy: Policy): { limiter: Limiter<"sync">; at: (ms: number) => Limiter<"sync">; state: () => StateView | undefined } {
  let nowMs = startMs;
  const limiter = createLimiter({ name: "api", policy, store: simpleStore(() => nowMs) });
  const at = (ms: number): Limiter<"sync"> => {
    nowMs = startMs + ms;
    return limiter;
  };
  return { limiter, at, state: () => limiter.keyState("k").states[0].state };
}

describe("keyState shows", () => {
  it("a fixed window with its count", () => {
    const { at, state } = world(fixedWindow({ limit: 5, window: "1m" }));
    at(10_000).consume("k", { cost: 3 });
    const window = { startMs, endMs: startMs + 60_000, count: 3, weight: 1 };
    expect(state()).toEqual({ kind: "windows", windowMs: 60_000, limit: 5, windows: [window] });
    at(60_000);
    expect(state()).toEqual({ kind: "empty" });
  });

  it("the windows of a sliding counter, whose oldest window counts in part", () => {
    const { at, state } = world(slidingWindowCounter({ limit: 10, window: "1m" }));
    at(10_000).consume("k", { cost: 8 });
    at(75_000).consume("k", { cost: 2 });
    const [before, current] = [
      { startMs, endMs: startMs + 60_000, count: 8, weight: 0.75 },
      { startMs: startMs + 60_000, endMs: startMs + 120_000, count: 2, weight: 1 },
    ];
    expect(state()).toEqual({ kind: "windows", windowMs: 60_000, limit: 10, windows: [before, current] });
    at(120_000);
    expect(state()).toMatchObject({ windows: [{ ...current, weight: 1 }] });
  });

  it("only the sub-windows that counted something", () => {
    const { at, state } = world(slidingWindowCounter({ limit: 10, window: "1m", buckets: 6 }));
    at(5_000).consume("k");
    at(35_000).consume("k", { cost: 2 });
    const spans = [
      { startMs, endMs: startMs + 10_000, count: 1, weight: 1 },
      { startMs: startMs + 30_000, endMs: startMs + 40_000, count: 2, weight: 1 },
    ];
    expect(state()).toMatchObject({ windows: spans });
    at(64_000);
    expect(state()).toMatchObject({ windows: [{ ...spans[0], weight: 0.6 }, spans[1]] });
  });

  it("a log with the times of its units", () => {
    const { at, state } = world(slidingWindowLog({ limit: 5, window: "1m" }));
    at(0).consume("k");
    at(20_000).consume("k", { cost: 2 });
    at(60_000).consume("k");
    const units = [
      { atMs: startMs + 20_000, units: 2 },
      { atMs: startMs + 60_000, units: 1 },
    ];
    expect(state()).toEqual({ kind: "log", windowMs: 60_000, limit: 5, units, total: 3 });
  });

  it("the newest thousand times of a longer log, and all its units", () => {
    const { at, state } = world(slidingWindowLog({ limit: 3000, window: "1m" }));
    for (let ms = 0; ms < 1500; ms++) at(ms).consume("k", { cost: 2 });
    const log = state();
    if (log?.kind !== "log") throw new Error("not a log");
    expect([log.total, log.units.length, log.units[0], log.units.at(-1)]).toEqual([
      3000,
      1000,
      { atMs: startMs + 500, units: 2 },
      { atMs: startMs + 1499, units: 2 },
    ]);
  });

  it.each([tokenBucket({ capacity: 10, refill: 6, every: "1m" }), gcra({ limit: 6, window: "1m", burst: 10 })])(
    "a bucket with its level: $algorithm",
    (policy) => {
      const { at, state } = world(policy);
      at(0).consume("k", { cost: 4 });
      at(5_000);
      expect(state()).toEqual({ kind: "bucket", level: 6.5, capacity: 10 });
      at(40_000);
      expect(state()).toEqual({ kind: "empty" });
    },
  );

  it("when the next tokens arrive, if they arrive in intervals", () => {
    const { at, state } = world(tokenBucket({ capacity: 10, refill: 2, every: "1m", style: "interval" }));
    at(0).consume("k", { cost: 6 });
    at(70_000);
    expect(state()).toEqual({ kind: "bucket", level: 6, capacity: 10, refillsAtMs: startMs + 120_000 });
  });

  it("a queue with its length, and when it is empty", () => {
    const { at, state } = world(leakyBucket({ capacity: 10, leak: 4, every: "1m" }));
    at(0).consume("k", { cost: 4 });
    at(7_500);
    expect(state()).toEqual({ kind: "queue", length: 3.5, capacity: 10, drainedAtMs: startMs + 60_000 });
  });

  it.each([
    [tokenBucket({ capacity: 5, refill: 5, every: "1m" }), { kind: "bucket", level: -2, capacity: 5 }],
    [tokenBucket({ capacity: 5, refill: 5, every: "1m", style: "interval" }), { kind: "bucket", level: -2 }],
    [leakyBucket({ capacity: 5, leak: 5, every: "1m" }), { kind: "queue", length: 7, drainedAtMs: startMs + 84_000 }],
    [fixedWindow({ limit: 5, window: "1m" }), { kind: "windows", windows: [{ count: 7 }] }],
    [slidingWindowCounter({ limit: 5, window: "1m" }), { kind: "windows", windows: [{ count: 7 }] }],
    [slidingWindowLog({ limit: 5, window: "1m" }), { kind: "log", total: 7, units: [{ atMs: startMs, units: 7 }] }],
  ])("a debt: $0.algorithm", (policy, expected) => {
    const { limiter, state } = world(policy);
    limiter.settle("k", limiter.consume("k", { cost: 3 }), 7);
    expect(state()).toMatchObject(expected);
  });

  it("a block and a ban with their ends, and the state beside them", () => {
    const { limiter, at } = world(fixedWindow({ limit: 5, window: "1m" }));
    limiter.consume("k");
    limiter.block("k", "10s");
    limiter.store.block("api", "k", 30_000, "ban");
    expect(limiter.keyState("k")).toEqual({
      atMs: startMs,
      decision: limiter.peek("k"),
      states: [
        {
          plan: undefined,
          policy: limiter.policy,
          decision: expect.objectContaining({ allowed: false, retryAfterMs: 30_000 }),
          state: expect.objectContaining({ windows: [expect.objectContaining({ count: 1 })] }),
        },
      ],
      block: { untilMs: startMs + 10_000 },
      ban: { untilMs: startMs + 30_000 },
    });
    expect(at(10_000).keyState("k")).toMatchObject({ block: undefined, ban: { untilMs: startMs + 30_000 } });
  });

  it.each<Policy>([
    fixedWindow({ limit: 0, window: "1m" }),
    slidingWindowCounter({ limit: 0, window: "1m" }),
    slidingWindowLog({ limit: 0, window: "1m" }),
    tokenBucket({ capacity: 0, refill: 1, every: "1s" }),
    tokenBucket({ capacity: 0, refill: 1, every: "1s", style: "interval" }),
    leakyBucket({ capacity: 0, leak: 1, every: "1s" }),
    gcra({ limit: 0, window: "1m" }),
    concurrency({ limit: 0, hold: "1m" }),
    calendarWindow({ limit: 0, per: "day", timeZone: "UTC" }),
  ])("a block under a limit of 0, which has no state: $algorithm", (policy) => {
    const { limiter } = world(policy);
    limiter.block("k", "10s");
    expect(limiter.keyState("k")).toMatchObject({
      atMs: startMs,
      decision: { allowed: false, limit: 0, retryAfterMs: Number.POSITIVE_INFINITY, policy: limiter.policy },
      states: [{ policy: limiter.policy, state: { kind: "empty" } }],
      block: { untilMs: startMs + 10_000 },
    });
  });
});

describe("keyState", () => {
  it("charges nothing: its decision refunds nothing", () => {
    const { limiter } = world(fixedWindow({ limit: 5, window: "1m" }));
    expect(limiter.refund("k", limiter.keyState("k").decision as Decision)).toBe(0);
  });

  it("asks a store that fails, whatever the breaker says, and fails with its fault", async () => {
    const store = new FaultyStore(simpleStore());
    const policy = fixedWindow({ limit: 5, window: "1m" });
    const onEvent = (): void => undefined;
    const limiter = createLimiter({ name: "api", policy, store, onStoreError: simpleStore(), onEvent });
    store.fault = "rejects";
    for (let i = 0; i < 6; i++) await limiter.consume("k");
    const { asked } = store;
    await expect(limiter.keyState("k")).rejects.toBe(fault);
    expect(store.asked).toBe(asked + 1);
    store.fault = undefined;
    expect((await limiter.keyState("k")).states).toHaveLength(1);
  });

  it("fails if the store does not answer in time", async () => {
    const store = new FaultyStore(simpleStore());
    const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 5, window: "1m" }), store, timeoutMs: 1 });
    store.fault = "never answers";
    await expect(limiter.keyState("k")).rejects.toMatchObject({ code: "FLOODGATE_STORE_TIMEOUT" });
  });
});
