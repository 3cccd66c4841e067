import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { FloodgateEvent } from "@floodgate/core";
import { expect, it } from "vitest";
import { Collector, maxRules } from "../../src/collect/collector.js";
import { StoreCounts } from "../../src/collect/latencies.js";
import type { Result } from "../../src/contract.js";

const enforced = ["allowed", "delayed", "exempt", "limited", "blocked", "banned", "missing-key"] as const;

/** The results that one rule can have: they depend on its `onStoreError`. */
const possible: readonly (readonly Result[])[] = [
  [...enforced, "failed-open"],
  [...enforced, "failed-closed"],
  [...enforced, "fallback-allowed", "fallback-limited"],
];

/** A decision with this result. */
function eventOf(result: Result): object {
  const allowed = result === "allowed" || result === "delayed" || result === "failed-open" || result === "fallback-allowed";
  const kinds = { blocked: "block", banned: "ban" } as const;
  const blocked = result in kinds ? { kind: kinds[result as "blocked"], untilMs: 0 } : undefined;
  const degradedBy = { "failed-open": "allow", "failed-closed": "deny", "fallback-allowed": "fallback", "fallback-limited": "fallback" };
  const by = degradedBy[result as "failed-open"];
  const decision = { cost: 1, allowed, blocked, degraded: by !== undefined, degradedBy: by, delayMs: result === "delayed" ? 1 : 0 };
  if (result === "exempt" || result === "missing-key") return { type: result, rejected: true };
  return { type: by === undefined ? (allowed ? "allowed" : "limited") : "degraded", decision, shadow: false };
}

const dayMs = 86_400_000;

setFlagsFromString("--expose_gc");
const collectGarbage: () => void = runInNewContext("gc");

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** `npm run test:long` counts a million. */
const keys = 1_000_000;

it(`${keys} distinct keys, under more rules than are counted, take at most 16 MB`, () => {
  let nowMs = Date.UTC(2026, 0, 1);
  const store = new StoreCounts();
  const collector = new Collector(
    () => nowMs,
    () => store,
  );
  const happens = (i: number): void => {
    const rule = i % (maxRules + 100);
    const results = possible[rule % possible.length] as readonly Result[];
    const result = results[Math.floor(i / (maxRules + 100)) % results.length] as Result;
    // Long keys take longest to count, and only the last ones are kept.
    const key = i < keys - 10_000 ? `user:${i}` : `${i}`.padEnd(200, "x");
    const event = { ...eventOf(result), name: `rule ${rule}`, key, charged: 0, storeMs: i % 100 };
    collector.listen(event as unknown as FloodgateEvent);
    // The whole takes two days.
    if (i % 1000 === 0) nowMs += (2 * dayMs * 1000) / keys;
  };
  // What is compiled now takes memory too.
  const before = usedBytes();
  for (let i = 0; i < keys; i++) happens(i);
  const megabytes = (usedBytes() - before) / 1e6;
  expect(collector.totals()).toHaveLength(maxRules + 1);
  expect(collector.requests.summary().keys).toHaveLength(256);
  expect(megabytes).toBeLessThan(16);
});
