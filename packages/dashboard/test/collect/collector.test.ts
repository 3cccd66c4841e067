import type { FloodgateEvent } from "@floodgate/core";
import type { RequestEvent } from "@floodgate/core/rules";
import { beforeEach, describe, expect, it } from "vitest";
import { Collector, maxRules, otherRules } from "../../src/collect/collector.js";
import { StoreCounts } from "../../src/collect/latencies.js";
import { wholeRequests } from "../../src/contract.js";

/** A whole minute and a whole day. */
const startMs = Date.UTC(2026, 0, 1);
let nowMs: number;
let collector: Collector;
const store = new StoreCounts();

beforeEach(() => {
  nowMs = startMs;
  collector = new Collector(
    () => nowMs,
    () => store,
  );
});

function happens(type: "allowed" | "limited" | "shadow-limited", times = 1, { name = "api", key = "ann", cost = 1 } = {}): void {
  const decision = { cost, allowed: type === "allowed", degraded: false, delayMs: 0 };
  const event = { type, name, key, decision, charged: type === "allowed" ? cost : 0, storeMs: 0.1, shadow: type === "shadow-limited" };
  for (let i = 0; i < times; i++) collector.listen(event as unknown as FloodgateEvent);
}

type Result = RequestEvent["result"];

function requested(result: Result, times = 1, replaced?: Result): void {
  const replaces = replaced && { type: "request", result: replaced };
  for (let i = 0; i < times; i++) collector.listen({ type: "request", result, replaces } as unknown as FloodgateEvent);
}

const wholeOf = (): unknown => collector.totals().find(({ rule }) => rule === wholeRequests)?.counts;

describe("whole requests", () => {
  it("are counted once, as the last middleware left them", () => {
    requested("allowed", 3);
    requested("limited", 2, "allowed");
    requested("uncounted");
    nowMs += 1000;
    collector.moveToNow();
    expect(wholeOf()).toEqual({ allowed: 1, limited: 2, exempt: 1 });
    // The second in which the first middleware let it pass has ended.
    requested("banned", 1, "allowed");
    requested("allowed", 2);
    nowMs += 1000;
    collector.moveToNow();
    expect(wholeOf()).toEqual({ allowed: 2, limited: 2, exempt: 1, banned: 1 });
  });

  it("take back nothing that was counted before the collector began", () => {
    requested("limited", 1, "allowed");
    requested("allowed", 2);
    nowMs += 1000;
    collector.moveToNow();
    expect(wholeOf()).toEqual({ allowed: 2, limited: 1 });
  });
});

describe("the history", () => {
  it("holds each second of the last minute once it has ended", () => {
    happens("allowed", 3);
    happens("limited", 2);
    expect(collector.history("minute").rules).toEqual([]);
    nowMs += 1000;
    happens("allowed");
    nowMs += 2000;
    const { startMs: first, stepMs, points, rules } = collector.history("minute");
    expect([first, stepMs, points]).toEqual([nowMs - 60_000, 1000, 60]);
    expect(rules).toHaveLength(1);
    expect(rules[0]?.series.allowed?.slice(-4)).toEqual([0, 3, 1, 0]);
    expect(rules[0]?.series.limited?.slice(-4)).toEqual([0, 2, 0, 0]);
    expect(rules[0]?.series["failed-open"]).toBeUndefined();
  });

  it("holds the hour in steps of ten seconds, and the day in minutes", () => {
    for (let second = 0; second < 120; second++) {
      happens("allowed", second < 60 ? 1 : 2);
      nowMs += 1000;
    }
    expect(collector.history("hour").rules[0]?.series.allowed?.slice(-13)).toEqual([0, ...Array(6).fill(10), ...Array(6).fill(20)]);
    expect(collector.history("day").rules[0]?.series.allowed?.slice(-3)).toEqual([0, 60, 120]);
    expect(collector.history("minute").rules[0]?.series.allowed).toEqual(Array(60).fill(2));
  });

  it.each([
    ["minute", 60_000],
    ["hour", 3_600_000],
    ["day", 86_400_000],
  ] as const)("forgets what is older than the %s", (range, ms) => {
    happens("allowed");
    nowMs += ms;
    expect(collector.history(range).rules[0]?.series.allowed?.[0]).toBe(1);
    nowMs += ms / 2;
    expect(collector.history(range).rules).toEqual([]);
    // The rings are used again without what they held.
    happens("limited");
    nowMs += ms / 2;
    expect(collector.history(range).rules[0]?.series).toEqual({ limited: expect.arrayContaining([1]) });
  });

  it("knows the busiest second of each minute", () => {
    requested("allowed", 2);
    nowMs += 5000;
    requested("allowed", 3);
    requested("limited", 4);
    nowMs += 70_000;
    requested("allowed", 1);
    nowMs += 1000;
    expect(collector.history("hour").bursts).toEqual([
      { minuteMs: startMs, secondMs: startMs + 5000, count: 7, atMost: 7, limited: 4, inMinute: 9 },
      { minuteMs: startMs + 60_000, secondMs: startMs + 75_000, count: 1, atMost: 1, limited: 0, inMinute: 1 },
    ]);
    nowMs += 86_460_000;
    expect(collector.history("day").bursts).toEqual([]);
  });

  it("goes on when the clock steps back a little, and starts anew when it was far ahead", () => {
    happens("allowed");
    nowMs += 10_000;
    happens("allowed");
    nowMs -= 5000;
    happens("allowed");
    nowMs += 6000;
    collector.moveToNow();
    expect(collector.totals()[0]?.counts).toEqual({ allowed: 3 });
    nowMs -= 3_600_000;
    happens("limited");
    nowMs += 1000;
    collector.moveToNow();
    expect(collector.totals()).toMatchObject([{ counts: { limited: 1 } }]);
    expect(collector.sinceMs).toBe(nowMs - 1000);
  });
});

describe("the totals", () => {
  it("sum up each rule, with the units that were asked for and charged", () => {
    happens("allowed", 2, { cost: 5 });
    happens("limited", 1, { cost: 7 });
    collector.listen({ type: "exempt", name: "api" });
    collector.listen({ type: "missing-key", name: "api", rejected: true });
    collector.listen({ type: "missing-key", name: "api", rejected: false });
    collector.listen({ type: "banned", name: "api", key: "ann", forMs: 1000, shadow: false });
    nowMs += 1000;
    collector.moveToNow();
    const counts = { allowed: 2, exempt: 2, limited: 1, "missing-key": 1 };
    expect(collector.totals()).toEqual([{ rule: "api", counts, units: { asked: 17, charged: 10 }, bans: 1 }]);
  });

  it("count the rules beyond the cap together", () => {
    for (let i = 0; i < maxRules + 50; i++) happens("allowed", 1, { name: `tenant ${i}` });
    nowMs += 1000;
    collector.moveToNow();
    expect(collector.totals()).toHaveLength(maxRules + 1);
    expect(collector.totals().at(-1)).toMatchObject({ rule: otherRules, counts: { allowed: 50 } });
  });
});

it("the last second that has ended has its requests, and none if a quiet one came after", () => {
  const after = (requests: number, seconds: number): number => {
    requested("allowed", requests);
    nowMs += 1000 * seconds;
    collector.moveToNow();
    return collector.perSecond;
  };
  expect([after(3, 1), after(0, 1), after(3, 2)]).toEqual([3, 0, 0]);
});

describe("the heaviest keys", () => {
  it("are those of the last hour, by requests and by rejections", () => {
    happens("allowed", 3, { key: "ann" });
    happens("limited", 2, { key: "bob" });
    nowMs += 40 * 60_000;
    happens("allowed", 1, { key: "bob" });
    nowMs += 1000;
    collector.moveToNow();
    expect(collector.requests.summary()).toMatchObject({
      total: 6,
      keys: [
        { key: "ann", count: 3 },
        { key: "bob", count: 3 },
      ],
    });
    expect(collector.rejections.summary()).toMatchObject({ total: 2, keys: [{ key: "bob", count: 2, error: 0 }] });
    expect(collector.requests.since(0)).toBe(startMs);
    nowMs += 30 * 60_000;
    collector.moveToNow();
    expect(collector.requests.summary()).toMatchObject({ total: 1, keys: [{ key: "bob", count: 1 }] });
  });
});
