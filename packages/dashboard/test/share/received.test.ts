import { createLimiter, fixedWindow } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import { runs } from "../../../../test/runs.js";
import type { Report } from "../../src/collect/report.js";
import { Watch } from "../../src/collect/watch.js";
import { type History, results } from "../../src/contract.js";
import { KeyLabels } from "../../src/routes/key-labels.js";
import { overviewOf } from "../../src/routes/overview.js";
import { mergeHistories } from "../../src/share/merge.js";
import { receivedHistory, receivedReport } from "../../src/share/received.js";

// Whatever another process has written, the dashboard shows figures, and not too many.

let watch: Watch;
let nowMs: number;
beforeEach(() => {
  nowMs = Date.UTC(2026, 0, 1);
  watch = new Watch(() => nowMs);
  const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 2, window: "1d" }), store: memoryStore() });
  for (const key of ["ann", "ann", "ann", "bob"]) limiter.consume(key);
  nowMs += 1000;
  watch.tick();
  limiter.close();
});
afterEach(() => watch.close());

const overview = (other: Report) =>
  overviewOf({
    title: "",
    nowMs,
    capabilities: { actions: false, keys: "masked" },
    scope: { kind: "all", sinceMs: 0 },
    reports: [watch.report(), other],
    labels: new KeyLabels(false),
  });

it("an honest report and history are received as they are", () => {
  const report = watch.report();
  expect(receivedReport(JSON.stringify(report))).toEqual(JSON.parse(JSON.stringify(report)));
  const history = watch.collector.history("hour", 6);
  expect(receivedHistory("hour", JSON.stringify(history))).toEqual(history);
});

const odd: readonly unknown[] = [null, -1, 1e308, 0.5, "", "__proto__", "x".repeat(10_000), "(".repeat(10_000), [], [null], {}, true];
const huge = Array.from({ length: 5000 }, (_, i) => i);

/** Puts something odd at one place of a value. */
function bent(value: unknown, choose: (most: number) => number): unknown {
  if (typeof value !== "object" || value === null || choose(4) === 0) {
    const at = choose(odd.length + 1);
    return at < odd.length ? odd[at] : huge;
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return odd[choose(odd.length)];
  const [name, inner] = entries[choose(entries.length)] as [string, unknown];
  const copy = Array.isArray(value) ? [...value] : { ...value };
  Object.defineProperty(copy, choose(8) === 0 && !Array.isArray(value) ? "__proto__" : name, {
    value: bent(inner, choose),
    enumerable: true,
    configurable: true,
    writable: true,
  });
  return copy;
}

const choices = fc.array(fc.nat(), { minLength: 20, maxLength: 40 }).map((numbers) => {
  let at = 0;
  return (most: number): number => (numbers[at++ % numbers.length] as number) % most;
});

it("any report is shown as figures of bounded size, or left out", () => {
  const honest = JSON.parse(JSON.stringify(watch.report()));
  fc.assert(
    fc.property(choices, (choose) => {
      const report = receivedReport(JSON.stringify(bent(bent(honest, choose), choose)));
      if (report === undefined) return;
      const shown = overview(report);
      const text = JSON.stringify(shown);
      expect(text.length).toBeLessThan(1_000_000);
      // JSON writes null for NaN and Infinity.
      expect(text).not.toContain("null");
      for (const { counts } of shown.totals) for (const count of Object.values(counts)) expect(count).toBeGreaterThan(0);
      for (const { count, error } of shown.top.byRequests.keys) expect(count).toBeGreaterThanOrEqual(error);
    }),
    runs(300),
  );
});

it("any history is added as whole steps, or left out", () => {
  const own: History = watch.collector.history("minute", 6);
  const honest = JSON.parse(JSON.stringify(own));
  fc.assert(
    fc.property(choices, (choose) => {
      const other = receivedHistory("minute", JSON.stringify(bent(bent(honest, choose), choose)));
      if (other === undefined) return;
      const { rules, bursts } = mergeHistories("minute", nowMs, [own, other]);
      for (const { series } of rules) {
        for (const [result, counts] of Object.entries(series)) {
          expect(results).toContain(result);
          expect(Object.keys(counts)).toHaveLength(60);
          expect(counts.every((count) => Number.isFinite(count) && count >= 0)).toBe(true);
        }
      }
      for (const burst of bursts) expect(Object.values(burst).every(Number.isFinite)).toBe(true);
    }),
    runs(300),
  );
});
