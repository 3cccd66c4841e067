import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/runs.js";
import { mostIn, policies } from "../../../conformance/src/store/algorithms.js";
import { simpleStore } from "../../../conformance/test/simple-store.js";
import { shareOf } from "../../src/algorithms/registry.js";
import { type Decision, fixedWindow, gcra, leakyBucket, type Policy, tokenBucket } from "../../src/index.js";
import { createLimit } from "../../src/store.js";

const startMs = 1_789_948_800_000;

/** The smallest number that is divided into whole units. */
function leastCount(policy: Policy): number {
  return policy.algorithm === "token-bucket" && policy.style === "interval" ? Math.min(policy.quota, policy.refill) : policy.quota;
}

test("n shares together admit no more than the whole limit, if there is a unit for each", () => {
  const shared = policies.chain((policy) =>
    fc.record({
      policy: fc.constant(policy),
      processes: fc.integer({ min: 1, max: leastCount(policy) }),
      arrivals: fc.array(fc.record({ byMs: fc.nat(policy.spanMs), cost: fc.integer({ min: 1, max: 3 }), at: fc.nat(99) }), {
        maxLength: 60,
        size: "max",
      }),
    }),
  );
  fc.assert(
    fc.property(shared, ({ policy, processes, arrivals }) => {
      let nowMs = startMs;
      const limit = createLimit("api", shareOf(policy, processes));
      const stores = Array.from({ length: processes }, () => simpleStore(() => nowMs));
      const admitted: Decision[] = [];
      for (const { byMs, cost, at } of arrivals) {
        // Mostly bursts.
        if (at % 3 === 0) nowMs += byMs;
        const decision = stores[at % processes]?.consume(limit, "k", cost) as Decision;
        if (decision.allowed) admitted.push(decision);
      }
      admitted.forEach((first, i) => {
        let units = 0;
        for (const { atMs, cost } of admitted.slice(i)) {
          units += cost;
          expect(BigInt(units) <= mostIn(policy, first.atMs, atMs - first.atMs)).toBe(true);
        }
      });
    }),
    runs(300),
  );
});

test("a share is a policy of the same algorithm, with counts rounded down to at least one", () => {
  fc.assert(
    fc.property(policies, fc.integer({ min: 1, max: 10_000 }), (policy, processes) => {
      const share = shareOf(policy, processes);
      expect(share.algorithm).toBe(policy.algorithm);
      expect(share.quota).toBe(Math.max(1, Math.floor(policy.quota / processes)));
    }),
    runs(100),
  );
});

test("the share of a single process is the whole policy", () => {
  fc.assert(fc.property(policies, (policy) => void expect(shareOf(policy, 1)).toEqual(policy)));
});

test.each<[string, Policy, Policy]>([
  ["a count", fixedWindow({ limit: 10, window: "1s" }), fixedWindow({ limit: 2, window: "1s" })],
  ["a count of less than one each", fixedWindow({ limit: 3, window: "1s" }), fixedWindow({ limit: 1, window: "1s" })],
  ["a smooth bucket", tokenBucket({ capacity: 20, refill: 10, every: "1s" }), tokenBucket({ capacity: 5, refill: 10, every: "4s" })],
  [
    "an interval bucket",
    tokenBucket({ capacity: 20, refill: 10, every: "1s", style: "interval" }),
    tokenBucket({ capacity: 5, refill: 2, every: "1s", style: "interval" }),
  ],
  [
    "an interval bucket with less than one token per share",
    tokenBucket({ capacity: 20, refill: 3, every: "1s", style: "interval" }),
    tokenBucket({ capacity: 5, refill: 1, every: "2s", style: "interval" }),
  ],
  ["an even pace", gcra({ limit: 100, window: "1m", burst: 1 }), gcra({ limit: 100, window: "4m", burst: 1 })],
  [
    "a queue",
    leakyBucket({ capacity: 10, leak: 5, every: "1s", maxDelayMs: 700 }),
    leakyBucket({ capacity: 2, leak: 5, every: "4s", maxDelayMs: 700 }),
  ],
])("a quarter of %s", (_, policy, quarter) => {
  expect(shareOf(policy, 4)).toEqual(quarter);
});
