import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { runs } from "../../../../test/runs.js";
import { policies } from "../../../conformance/src/store/algorithms.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import {
  createLimiter,
  type Decision,
  fixedWindow,
  type Limiter,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../src/index.js";
import { type Fault, FaultyStore } from "../faulty-store.js";
import {
  away,
  fallback,
  inner,
  inTime,
  limiter,
  patienceMs,
  pausedMs,
  policy,
  replaceStore,
  setUp,
  startMs,
  store,
  timeoutMs,
  used,
  useFallback,
} from "./fallback-world.js";

useFallback();

/** Makes a decision during an outage, then brings the store back. */
async function decidedAway(api: Limiter<"async">, cost = 1): Promise<Decision> {
  store.fault = "rejects";
  const decision = await api.consume("k", { cost });
  store.fault = undefined;
  await vi.advanceTimersByTimeAsync(pausedMs);
  return decision;
}

describe("a fallback's decision, after its usage was handed over,", () => {
  it.each<[string, Policy]>([
    ["a fixed window", fixedWindow({ limit: 100, window: "1h" })],
    ["a log", slidingWindowLog({ limit: 100, window: "1h" })],
    ["a sliding window", slidingWindowCounter({ limit: 100, window: "1h" })],
    ["an interval bucket", tokenBucket({ capacity: 100, refill: 1, every: "1h", style: "interval" })],
  ])("is settled in the store once, to a higher or lower cost or to 0, in %s", async (_, of) => {
    for (const [cost, units] of [
      [50, 45],
      [500, 495],
      [2, -3],
      [0, -5],
    ] as const) {
      setUp();
      const api = limiter(of, 2);
      const decision = await decidedAway(api, 5);
      await api.consume("k");
      expect([await api.settle("k", decision, cost), await api.settle("k", decision, 99)]).toEqual([units, 0]);
      expect([used(inner, api), used(fallback, api)]).toEqual([Math.min(1 + cost, 100), 0]);
    }
  });

  it("is refunded in whole units; a partly drained unit is not refunded", async () => {
    const api = limiter(tokenBucket({ capacity: 100, refill: 1, every: "1h" }));
    const decision = await decidedAway(api, 5);
    await api.consume("k");
    expect(await api.refund("k", decision)).toBe(4);
  });

  it("is settled correctly when the clocks of both stores differ", async () => {
    for (const aheadMs of [-86_400_000, 0, 86_400_000]) {
      const there = simpleStore(() => Date.now() + aheadMs);
      replaceStore(new FaultyStore(there));
      const api = limiter(slidingWindowLog({ limit: 12, window: "1h" }), 1, `${aheadMs} ms`);
      const decisions = await away(api, 3);
      await vi.advanceTimersByTimeAsync(20 * 60_000);
      await api.consume("k");
      await vi.advanceTimersByTimeAsync(50 * 60_000);
      // By now the decision is older than the window, but the charge that was handed over is not.
      expect([await api.refund("k", decisions[0] as Decision), used(there, api)]).toEqual([1, 3]);
    }
  });

  it("is settled in the fallback for the part that was not handed over", async () => {
    const api = limiter();
    await inTime(api.consume("k", { cost: 8 }));
    const decision = await decidedAway(api, 7);
    await api.consume("k");
    expect([used(inner, api), used(fallback, api)]).toEqual([12, 3]);
    expect(await api.refund("k", decision)).toBe(4);
    await api.consume("k");
    expect([used(inner, api), used(fallback, api)]).toEqual([12, 0]);
  });

  it("refunds no more than the store was charged", async () => {
    const api = limiter();
    await inTime(api.consume("k", { cost: 10 }));
    const decisions = await away(api, 5);
    await vi.advanceTimersByTimeAsync(pausedMs);
    await api.consume("k");
    let units = 0;
    for (const decision of decisions) units += await api.refund("k", decision);
    expect(units).toBe(2);
  });

  it("can still be settled to a higher cost after others were refunded", async () => {
    const api = limiter(slidingWindowLog({ limit: 12, window: "1h" }));
    await inTime(api.consume("k", { cost: 10 }));
    const first = await decidedAway(api, 2);
    const second = await decidedAway(api, 1);
    await api.consume("k");
    expect(used(fallback, api)).toBe(1);
    await api.refund("k", first);
    expect(await api.settle("k", second, 500)).toBe(499);
  });

  it("is not confused with decisions of the next outage", async () => {
    const api = limiter(slidingWindowLog({ limit: 12, window: "1h" }));
    const first = await decidedAway(api, 2);
    await api.consume("k");
    await vi.advanceTimersByTimeAsync(30 * 60_000);
    const second = await decidedAway(api, 3);
    await api.consume("k");
    expect([await api.refund("k", second), await api.refund("k", first), used(inner, api)]).toEqual([3, 2, 2]);
  });

  it("is refunded minus later refills, whichever request began the bucket's interval", async () => {
    const api = limiter(tokenBucket({ capacity: 100, refill: 50, every: "1h", style: "interval" }));
    store.fault = "rejects";
    await api.consume("k", { cost: 50 });
    await vi.advanceTimersByTimeAsync(3_500_000);
    const decision = await decidedAway(api, 50);
    await vi.advanceTimersByTimeAsync(200_000);
    expect(await api.peek("k")).toMatchObject({ degraded: false, remaining: 50 });
    expect([await api.refund("k", decision), used(inner, api)]).toEqual([0, 50]);
  });

  it("is not refunded after its key was reset", async () => {
    const api = limiter();
    const decision = await decidedAway(api, 5);
    await api.reset("k");
    await decidedAway(api, 4);
    await api.consume("k");
    expect([await api.refund("k", decision), used(inner, api)]).toEqual([0, 5]);
  });

  it.each<[Fault, number, number]>([
    ["answers late", 9, 4],
    ["answers late", 0, -5],
    ["fails late", 9, 4],
    ["fails late", 0, -5],
  ])("waits for a hand-over that %s, and is then settled to %d", async (fault, cost, units) => {
    const api = limiter();
    const decision = await decidedAway(api, 5);
    store.fault = fault;
    const asking = api.consume("k");
    store.fault = undefined;
    const settling = api.settle("k", decision, cost);
    store.arrive();
    expect([await settling, (await asking).allowed]).toEqual([units, true]);
    expect((await api.peek("k")).degraded).toBe(false);
    expect([used(inner, api), used(fallback, api)]).toEqual([cost + 1, 0]);
  });

  it("times out by its own limiter's timeoutMs, even if another limiter's hand-over takes longer", async () => {
    store.keepsDeadlines = true;
    const [quick, patient] = [
      limiter(),
      createLimiter({ name: "api", policy, store, timeoutMs: 1000, onStoreError: { store: fallback, share: 1 } }),
    ];
    const decision = await decidedAway(quick, 5);
    store.fault = "never answers";
    void patient.consume("k");
    store.fault = undefined;
    await expect(inTime(quick.settle("k", decision, 9))).rejects.toThrow("did not answer within 50 ms");
    expect((await inTime(quick.consume("k"))).degraded).toBe(true);
  });

  it("waits at most timeoutMs for hand-over and settlement", async () => {
    const api = limiter();
    const decision = await decidedAway(api, 5);
    store.fault = "answers late";
    void api.consume("k");
    await vi.advanceTimersByTimeAsync(timeoutMs - 20);
    const settling = api.settle("k", decision, 9);
    store.arrive();
    await vi.advanceTimersByTimeAsync(10);
    store.fault = "never answers";
    await expect(inTime(settling)).rejects.toThrow("did not answer within 50 ms");
  });
});

describe("a settlement after the store's return", () => {
  const few = fc.integer({ min: 1, max: 6 });
  const time = fc.integer({ min: 1, max: 60 }).map((n) => `${BigInt(n)}ms` as const);

  it.each<[string, fc.Arbitrary<Policy>]>([
    ["any policy", policies],
    [
      "a sliding window that has partly passed",
      fc.record({ limit: fc.integer({ min: 10, max: 30 }), window: time }).map(slidingWindowCounter),
    ],
    [
      "an interval bucket with refills begun by an earlier request",
      fc.record({ capacity: few, refill: few, every: time, style: fc.constant("interval" as const) }).map(tokenBucket),
    ],
    [
      "a log with countRejected that may have pushed the charge out",
      fc.record({ limit: few, window: time, countRejected: fc.constant(true) }).map(slidingWindowLog),
    ],
  ])(
    "refunds at most as much as before it, and charges at least as much, under %s",
    async (_, any) => {
      const outage = any.chain((of) =>
        fc.record({
          of: fc.constant(of),
          processes: fc.integer({ min: 1, max: 3 }),
          requests: fc.array(fc.record({ byMs: fc.nat(of.spanMs), cost: fc.integer({ min: 1, max: 4 }) }), {
            minLength: 1,
            maxLength: 8,
          }),
          which: fc.nat(7),
          realCost: fc.nat(8),
          backAfterMs: fc.nat(of.spanMs),
        }),
      );
      await fc.assert(
        fc.asyncProperty(outage, async ({ of, processes, requests, which, realCost, backAfterMs }) => {
          const usedIn = async (order: "before" | "after"): Promise<number> => {
            vi.setSystemTime(startMs);
            setUp();
            const api = limiter(of, processes);
            store.fault = "rejects";
            const decisions: Decision[] = [];
            for (const { byMs, cost } of requests) {
              vi.advanceTimersByTime(byMs);
              decisions.push(await api.consume("k", { cost }));
            }
            const decision = decisions[which % decisions.length] as Decision;
            await vi.advanceTimersByTimeAsync(pausedMs);
            vi.setSystemTime(Date.now() - pausedMs + backAfterMs);
            store.fault = undefined;
            if (order === "before") await api.settle("k", decision, realCost);
            await api.peek("k");
            if (order === "after") await api.settle("k", decision, realCost);
            await api.peek("k");
            return used(inner, api);
          };
          // The backlog of a queue with maxDelayMs is derived from its wait in whole milliseconds, so it may be one unit too high.
          const rounded = of.algorithm === "leaky-bucket" && of.maxDelayMs < Number.POSITIVE_INFINITY ? 1 : 0;
          expect((await usedIn("after")) + rounded).toBeGreaterThanOrEqual(await usedIn("before"));
        }),
        runs(1000),
      );
    },
    patienceMs,
  );
});
