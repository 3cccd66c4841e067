import { describe, expect, it } from "vitest";
import { Collector } from "../../src/collect/collector.js";
import { StoreCounts } from "../../src/collect/latencies.js";
import { maxExtra } from "../../src/collect/ring.js";
import type { History } from "../../src/contract.js";
import { mergeHistories } from "../../src/share/merge.js";

const minute = (startMs: number, counts: number[], bursts: History["bursts"] = []): History => ({
  range: "minute",
  startMs,
  stepMs: 1000,
  points: counts.length,
  rules: [{ rule: "a", series: { allowed: counts } }],
  bursts,
});

describe("histories of several processes", () => {
  it("are summed up step by step, wherever each of them begins", () => {
    const nowMs = 100_500;
    const merged = mergeHistories("minute", nowMs, [
      minute(40_000, Array(60).fill(1)),
      minute(90_000, [5, 6, 7]),
      minute(30_000, [9, 9, 9]),
    ]);
    expect(merged).toMatchObject({ range: "minute", startMs: 40_000, stepMs: 1000, points: 60 });
    expect(merged.rules).toEqual([{ rule: "a", series: { allowed: [...Array(50).fill(1), 6, 7, 8, ...Array(7).fill(1)] } }]);
  });

  it("leave out rules without a count in the range", () => {
    expect(mergeHistories("minute", 1e9, [minute(0, [1, 2, 3])]).rules).toEqual([]);
  });

  it("reach back a whole range, although they are read late", () => {
    let nowMs = 1_000_000;
    const collector = new Collector(
      () => nowMs,
      () => new StoreCounts(),
    );
    for (let i = 0; i < 100; i++) {
      collector.listen({ type: "exempt", name: "a" });
      nowMs += 1000;
    }
    const late = mergeHistories("minute", nowMs - 3000, [collector.history("minute", maxExtra)]);
    expect(late.rules[0]?.series.exempt).toEqual(Array(60).fill(1));
  });

  it("bound the busiest second of a minute from both sides", () => {
    const burst = { minuteMs: 60_000, secondMs: 65_000, count: 5, atMost: 5, limited: 1, inMinute: 20 };
    const busier = { ...burst, secondMs: 66_000, count: 8, atMost: 8, limited: 3, inMinute: 10 };
    const { bursts } = mergeHistories("minute", 120_000, [minute(60_000, [1], [burst]), minute(60_000, [1], [busier])]);
    expect(bursts).toEqual([{ minuteMs: 60_000, secondMs: 66_000, count: 8, atMost: 13, limited: 3, inMinute: 30 }]);
  });
});
