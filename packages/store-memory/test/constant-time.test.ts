import { fixedWindow, type Policy, slidingWindowCounter, tokenBucket } from "@floodgate/core";
import { createLimit, type Limit } from "@floodgate/core/store";
import { describe, expect, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { memoryStore } from "../src/memory-store.js";

/** A limit that counts how often a store reads a state. */
function countedLimit(policy: Policy): { limit: Limit; looks: () => number } {
  const plain = createLimit("api", policy);
  let looks = 0;
  const algorithm: Limit["algorithm"] = {
    ...plain.algorithm,
    decide(...given) {
      looks++;
      return plain.algorithm.decide(...given);
    },
  };
  return { limit: { ...plain, algorithm }, looks: () => looks };
}

/** The most reads that one fresh key causes on a full store. */
function maxLooks(policy: Policy, maxKeys: number, cost: number): number {
  let nowMs = 1_789_948_800_000;
  const store = memoryStore({ maxKeys, clock: () => nowMs });
  const { limit, looks } = countedLimit(policy);
  let most = 0;
  for (let i = 0; i < 3 * maxKeys; i++) {
    if (i % 50 === 0) nowMs += 100;
    const before = looks();
    store.consume(limit, `key ${i}`, cost);
    most = Math.max(most, looks() - before);
  }
  expect(store.size).toBeLessThanOrEqual(maxKeys);
  return most;
}

describe("a fresh key on a full store", () => {
  for (const quota of [1, 2, 3, 100]) {
    it(`reads few other keys at limit ${quota}, however many there are`, () => {
      for (const policy of [
        fixedWindow({ limit: quota, window: "1m" }),
        slidingWindowCounter({ limit: quota, window: "1m" }),
        tokenBucket({ capacity: quota, refill: quota, every: "1m" }),
      ]) {
        for (const cost of new Set([1, Math.ceil(quota / 2), quota])) {
          // One decision, two keys in rotation, up to eight ended keys, eight open keys, and four and eight blocked keys.
          for (const maxKeys of allRuns ? [10, 1000, 10_000] : [10, 2000]) expect(maxLooks(policy, maxKeys, cost)).toBeLessThanOrEqual(31);
        }
      }
    });
  }

  for (const policy of [fixedWindow({ limit: 10, window: "1h" }), slidingWindowCounter({ limit: 10, window: "1h" })]) {
    for (const cost of [1, 5, 6]) {
      it(`evicts no blocked key while another key can pass (${policy.algorithm}, cost ${cost} of 10)`, () => {
        const store = memoryStore({ maxKeys: 1000, clock: () => 1_789_948_800_000 });
        const limit = createLimit("api", policy);
        for (let i = 0; i < 500; i++) store.consume(limit, `blocked ${i}`, 10);
        for (let i = 0; i < 5000; i++) store.consume(limit, `fresh ${i}`, cost);
        for (let i = 0; i < 500; i++) expect(store.peek(limit, `blocked ${i}`).allowed).toBe(false);
      });
    }
  }

  it("of a rule with long blocks evicts no blocked key of another rule within its fair share", () => {
    const store = memoryStore({ maxKeys: 1000, clock: () => 1_789_948_800_000 });
    const [minute, day] = [
      createLimit("minute", fixedWindow({ limit: 1, window: "1m" })),
      createLimit("day", fixedWindow({ limit: 1, window: "1d" })),
    ];
    for (let i = 0; i < 400; i++) store.consume(minute, `blocked ${i}`, 1);
    for (let i = 0; i < 5000; i++) store.consume(day, `fresh ${i}`, 1);
    for (let i = 0; i < 400; i++) expect(store.peek(minute, `blocked ${i}`).allowed).toBe(false);
  });
});
