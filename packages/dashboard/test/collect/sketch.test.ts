import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeSummaries, Sketch, type Summary } from "../../src/collect/sketch.js";

const rule = "r";
const streams = fc.array(fc.integer({ min: 0, max: 12 }).map(String), { maxLength: 200 });
const sizes = fc.integer({ min: 1, max: 6 });

function summaryOf(stream: readonly string[], counters: number): Summary {
  const sketch = new Sketch(counters);
  for (const key of stream) sketch.add(rule, key);
  return sketch.summary();
}

/** What every summary of a stream promises. */
function expectBounds(summary: Summary, stream: readonly string[]): void {
  const truth = new Map<string, number>();
  for (const key of stream) truth.set(key, (truth.get(key) ?? 0) + 1);
  const { total, keys, counters } = summary;
  expect(total).toBe(stream.length);
  expect(keys.length).toBeLessThanOrEqual(counters);
  for (const { key, count, error } of keys) {
    const real = truth.get(key) ?? 0;
    expect(count).toBeGreaterThanOrEqual(real);
    expect(count - error).toBeLessThanOrEqual(real);
    expect(error).toBeLessThanOrEqual(total / counters);
  }
  const kept = new Set(keys.map(({ key }) => key));
  for (const [key, real] of truth) if (real > total / counters) expect(kept).toContain(key);
}

describe("a sketch", () => {
  it("keeps every key above N/m, and is at most N/m too high", () => {
    fc.assert(fc.property(streams, sizes, (stream, counters) => expectBounds(summaryOf(stream, counters), stream)));
  });

  it("is exact while there are no more keys than counters", () => {
    fc.assert(
      fc.property(streams, (stream) => {
        for (const { error } of summaryOf(stream, 13).keys) expect(error).toBe(0);
      }),
    );
  });

  it("keeps the bounds when sketches are merged, in one step or several", () => {
    fc.assert(
      fc.property(fc.array(streams, { minLength: 1, maxLength: 5 }), sizes, (parts, counters) => {
        const summaries = parts.map((stream) => summaryOf(stream, counters));
        expectBounds(mergeSummaries(summaries, counters), parts.flat());
        const stepwise = summaries.reduce((merged, next) => mergeSummaries([merged, next], counters));
        expectBounds(stepwise, parts.flat());
      }),
    );
  });

  it("is deterministic, and merges in any order to the same", () => {
    fc.assert(
      fc.property(streams, streams, sizes, (a, b, counters) => {
        const one = summaryOf(a, counters);
        const two = summaryOf(b, counters);
        expect(summaryOf(a, counters)).toEqual(one);
        expect(mergeSummaries([one, two], counters)).toEqual(mergeSummaries([two, one], counters));
      }),
    );
  });

  it("tells the rules of one key apart, whatever their names are", () => {
    const sketch = new Sketch(8);
    for (const [name, key] of [
      ["a", "bc"],
      ["ab", "c"],
      ["__proto__", "constructor"],
      ["1:a", "b"],
    ] as const)
      sketch.add(name, key);
    expect(mergeSummaries([sketch.summary()], 8).keys).toHaveLength(4);
  });

  it("cuts long keys", () => {
    const sketch = new Sketch(1);
    sketch.add(rule, "x".repeat(100_000));
    expect(sketch.summary().keys[0]?.key).toHaveLength(256);
  });
});
