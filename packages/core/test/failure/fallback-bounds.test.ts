import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { runs } from "../../../../test/runs.js";
import { mostIn, policies } from "../../../conformance/src/store/algorithms.js";
import { type Step, scripts } from "../../../conformance/src/store/scripts.js";
import { shareOf } from "../../src/algorithms/registry.js";
import { type Decision, gcra, type Limiter } from "../../src/index.js";
import type { Fault } from "../faulty-store.js";
import { inTime, limiter, patienceMs, setUp, startMs, store, useFallback } from "./fallback-world.js";

useFallback();

describe("across outages, a process", () => {
  const kinds: Fault[] = ["rejects", "throws", "never answers", "answers late", "fails late"];

  /** Plays requests on a key with the given store faults, and returns the allowed decisions. */
  async function play(
    api: Limiter<"async">,
    steps: readonly { step: Step; fault: Fault | undefined; times: number }[],
  ): Promise<Decision[]> {
    const passed: Decision[] = [];
    for (const { step, fault, times } of steps) {
      vi.advanceTimersByTime(Math.max(0, step.atMs - Date.now()));
      store.fault = fault;
      const cost = "cost" in step ? step.cost : 1;
      const decisions = await inTime(Promise.all(Array.from({ length: times }, () => api.consume("k", { cost }))));
      passed.push(...decisions.filter((decision) => decision.allowed));
    }
    // Concurrent requests may be decided in any order.
    return passed.sort((one, other) => one.atMs - other.atMs);
  }

  function assertBound(passed: readonly Decision[], most: (fromMs: number, stretchMs: number) => bigint): void {
    passed.forEach((first, i) => {
      let units = 0;
      for (const { atMs, cost } of passed.slice(i)) {
        units += cost;
        expect(BigInt(units) <= most(first.atMs, atMs - first.atMs)).toBe(true);
      }
    });
  }

  it("does not let usage drain twice, in the fallback and in the store", async () => {
    vi.setSystemTime(startMs);
    setUp();
    const arrivals = [0, 0, 93, 124, 617, 617, 951].map((ms, i) => ({ atMs: startMs + ms, cost: [1, 2, 1, 1, 2, 2, 1][i] as number }));
    const passed = await play(
      limiter(gcra({ limit: 3, window: "1s" })),
      arrivals.map((step, i) => ({ step, fault: i === 1 || i === 2 ? "rejects" : undefined, times: 1 })),
    );
    expect(passed.map(({ cost, degraded }) => [cost, degraded])).toEqual([
      [1, false],
      [2, true],
      [1, true],
      [1, false],
    ]);
  });

  it(
    "admits no more than the policy allows in any interval from the start of an outage on",
    async () => {
      const outage = policies.chain((policy) =>
        fc.record({
          policy: fc.constant(policy),
          steps: scripts(policy, { longest: 40 }),
          from: fc.nat(15),
          requests: fc.integer({ min: 1, max: 20 }),
          fault: fc.constantFrom(...kinds),
        }),
      );
      await fc.assert(
        fc.asyncProperty(outage, async ({ policy, steps, from, requests, fault }) => {
          vi.setSystemTime(startMs);
          setUp();
          const passed = await play(
            limiter(policy),
            steps.map((step, i) => ({ step, fault: i >= from && i < from + requests ? fault : undefined, times: 1 })),
          );
          const begun = passed.findIndex(({ degraded }) => degraded);
          // Two buckets with different refill times may get one more refill than a single bucket.
          const more = policy.algorithm === "token-bucket" && policy.style === "interval" ? BigInt(policy.refill) : 0n;
          if (begun >= 0) assertBound(passed.slice(begun), (fromMs, stretchMs) => mostIn(policy, fromMs, stretchMs) + more);
        }),
        runs(200),
      );
    },
    patienceMs,
  );

  it(
    "admits no more than the policy plus its share in any interval, however often the store fails",
    async () => {
      const flapping = policies.chain((policy) =>
        fc.record({
          policy: fc.constant(policy),
          processes: fc.integer({ min: 1, max: 3 }),
          steps: scripts(policy, { longest: 40 }).chain((steps) =>
            fc.tuple(
              ...steps.map((step) =>
                fc.record({
                  step: fc.constant(step),
                  fault: fc.option(fc.constantFrom(...kinds), { nil: undefined }),
                  times: fc.integer({ min: 1, max: 3 }),
                }),
              ),
            ),
          ),
        }),
      );
      await fc.assert(
        fc.asyncProperty(flapping, async ({ policy, processes, steps }) => {
          vi.setSystemTime(startMs);
          setUp();
          const share = shareOf(policy, processes);
          const passed = await play(limiter(policy, processes), steps);
          assertBound(passed, (fromMs, stretchMs) => mostIn(policy, fromMs, stretchMs) + mostIn(share, fromMs, stretchMs));
        }),
        runs(200),
      );
    },
    patienceMs,
  );
});
