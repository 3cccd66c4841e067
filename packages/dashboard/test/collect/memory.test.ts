import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { FloodgateEvent } from "@floodgate/core";
import { expect, it } from "vitest";
import { allRuns } from "../../../../test/runs.js";
import { Collector, mostRules } from "../../src/collect/collector.js";
import { StoreCounts } from "../../src/collect/latencies.js";
import { results } from "../../src/contract.js";

const dayMs = 86_400_000;

setFlagsFromString("--expose_gc");
const collectGarbage: () => void = runInNewContext("gc");

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** `npm run test:long` counts a million. */
const keys = allRuns ? 1_000_000 : 200_000;

it(`${keys} distinct keys, under more rules than are counted, take at most 16 MB`, () => {
  let nowMs = Date.UTC(2026, 0, 1);
  const store = new StoreCounts();
  const collector = new Collector(
    () => nowMs,
    () => store,
  );
  const happens = (i: number): void => {
    const type = results[i % results.length];
    // Long keys take longest to count, and only the last ones are kept.
    const key = i < keys - 10_000 ? `user:${i}` : `${i}`.padEnd(200, "x");
    const name = `rule ${i % (mostRules + 100)}`;
    const event = { type, name, key, decision: { cost: 1 }, charged: 0, storeMs: i % 100, rejected: true };
    collector.listen(event as unknown as FloodgateEvent);
    // The whole takes two days.
    if (i % 1000 === 0) nowMs += (2 * dayMs * 1000) / keys;
  };
  // What is compiled now takes memory too.
  const before = usedBytes();
  for (let i = 0; i < keys; i++) happens(i);
  const megabytes = (usedBytes() - before) / 1e6;
  expect(collector.totals()).toHaveLength(mostRules + 1);
  expect(collector.requests.summary().keys).toHaveLength(256);
  expect(megabytes).toBeLessThan(16);
});
