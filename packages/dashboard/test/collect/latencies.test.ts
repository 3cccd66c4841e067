import fc from "fast-check";
import { expect, it } from "vitest";
import { Latencies, latencyOf, mergeHistograms } from "../../src/collect/latencies.js";

it("gives percentiles that are never too low, and at most 42 % too high", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0.001, max: 100_000, noNaN: true }), { minLength: 1, maxLength: 100 }), (all) => {
      const latencies = new Latencies();
      for (const ms of all) latencies.add(ms, 1_000_000);
      const sorted = [...all].sort((a, b) => a - b);
      const latency = latencyOf(latencies.histogram(1_000_000));
      expect(latency).toMatchObject({ count: all.length, maxMs: sorted.at(-1) });
      for (const [share, found] of [
        [0.5, latency?.p50Ms],
        [0.9, latency?.p90Ms],
        [0.99, latency?.p99Ms],
      ] as const) {
        const real = sorted[Math.ceil(share * all.length) - 1] as number;
        expect(found).toBeGreaterThanOrEqual(real * (1 - 1e-9));
        expect(found).toBeLessThanOrEqual(real * Math.SQRT2 * (1 + 1e-9));
      }
    }),
  );
});

it("forgets what is older than a minute", () => {
  const latencies = new Latencies();
  latencies.add(5, 0);
  latencies.add(1, 30_000);
  expect(latencyOf(latencies.histogram(59_999))).toMatchObject({ count: 2, maxMs: 5 });
  expect(latencyOf(latencies.histogram(60_000))).toMatchObject({ count: 1, maxMs: 1 });
  expect(latencyOf(latencies.histogram(90_000))).toBeUndefined();
});

it("sums up the histograms of several processes", () => {
  const [a, b] = [new Latencies(), new Latencies()];
  a.add(1, 0);
  b.add(3, 0);
  expect(latencyOf(mergeHistograms([a.histogram(0), b.histogram(0)]))).toMatchObject({ count: 2, maxMs: 3 });
});
