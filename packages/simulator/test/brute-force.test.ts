import type { RuleSet } from "@floodgate/core/rules";
import { describe, expect, it } from "vitest";
import { simulate } from "../src/index.js";
import { Replay, replayLogs } from "../src/replay/replay.js";
import { accessLog, lineAt, logOf, randomLog, rules } from "./logs.js";

interface Line {
  readonly ip: string;
  readonly ms: number;
}

/** Reads a log without the simulator, and sorts it by time. */
function linesOf(log: string): Line[] {
  return log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [, ip = "", date = "", time = "", zone = ""] = /^(\S+) .*?\[(.*?):(\S+) (\S+)\]/.exec(line) ?? [];
      return { ip, ms: Date.parse(`${date.replaceAll("/", " ")} ${time} GMT${zone}`) };
    })
    .sort((a, b) => a.ms - b.ms);
}

/** Whether each request is allowed, from all that were allowed before. */
function decided(lines: readonly Line[], allows: (before: readonly number[], ms: number) => boolean): boolean[] {
  const allowed = new Map<string, number[]>();
  return lines.map(({ ip, ms }) => {
    const before = allowed.get(ip) ?? [];
    allowed.set(ip, before);
    const passes = allows(before, ms);
    if (passes) before.push(ms);
    return passes;
  });
}

const minuteMs = 60_000;
const bruteForce = {
  "fixed-window": (limit: number) => (before: readonly number[], ms: number) =>
    before.filter((earlier) => Math.floor(earlier / minuteMs) === Math.floor(ms / minuteMs)).length < limit,
  "sliding-window-log": (limit: number) => (before: readonly number[], ms: number) =>
    before.filter((earlier) => earlier > ms - minuteMs).length < limit,
} as const;

async function replayed(log: string, set: RuleSet): Promise<{ keys: string[]; allowed: boolean[] }> {
  const keys: string[] = [];
  const allowed: boolean[] = [];
  const replay = new Replay(set, {});
  replay.onDecision = (key, decision) => {
    keys.push(key);
    allowed.push(decision.allowed);
  };
  await replayLogs([logOf(log)], set, {}, replay);
  return { keys, allowed };
}

/** The most requests of one client in any window, and when it ended. */
function worstWindow(lines: readonly Line[], windowMs: number): number {
  const byIp = grouped(lines);
  let most = 0;
  for (const own of byIp.values()) {
    for (const { ms } of own) most = Math.max(most, own.filter((other) => other.ms > ms - windowMs && other.ms <= ms).length);
  }
  return most;
}

function grouped(lines: readonly Line[]): Map<string, Line[]> {
  const byIp = new Map<string, Line[]>();
  for (const line of lines) byIp.set(line.ip, [...(byIp.get(line.ip) ?? []), line]);
  return byIp;
}

const logs = { "a real log": accessLog, "bursts of many clients": randomLog(7, 3000) };

describe.each(Object.entries(logs))("%s", (_, log) => {
  const lines = linesOf(log);

  describe.each(["fixed-window", "sliding-window-log"] as const)("under a %s", (algorithm) => {
    it.each([1, 3, 10, 30])("of %i a minute is decided line by line as by brute force", async (limit) => {
      const set = rules(`rules: [{ name: per-ip, policy: { algorithm: ${algorithm}, limit: ${limit}, window: 1m } }]`);
      const { keys, allowed } = await replayed(log, set);
      expect(keys).toEqual(lines.map(({ ip }) => ip));
      expect(allowed).toEqual(decided(lines, bruteForce[algorithm](limit)));
    });

    it("is measured as by brute force", async () => {
      const limit = 5;
      const set = rules(`rules: [{ name: per-ip, policy: { algorithm: ${algorithm}, limit: ${limit}, window: 1m } }]`);
      const passes = decided(lines, bruteForce[algorithm](limit));
      const allowed = lines.filter((_, i) => passes[i]);
      const rejected = lines.filter((_, i) => !passes[i]);
      const [rule] = (await simulate([logOf(log)], set, { top: 1000 })).rules;
      const countOf = (ip: string, among: readonly Line[]) => among.filter((line) => line.ip === ip).length;
      expect(rule).toMatchObject({
        requests: lines.length,
        allowed: allowed.length,
        limited: rejected.length,
        clients: new Set(lines.map(({ ip }) => ip)).size,
        clientsLimited: new Set(rejected.map(({ ip }) => ip)).size,
        worstWindow: { windowMs: minuteMs, units: worstWindow(allowed, minuteMs) },
        burst: { windowMs: 1000, units: worstWindow(allowed, 1000) },
      });
      for (const { key, requests, limited, peak } of rule?.topLimited ?? []) {
        expect({ key, requests, limited }).toEqual({ key, requests: countOf(key, lines), limited: countOf(key, rejected) });
        expect(peak).toBe(
          worstWindow(
            lines.filter(({ ip }) => ip === key),
            minuteMs,
          ),
        );
      }
    });
  });
});

it("a lock-out lasts from the first rejection until a request would pass, and an interrupted one is two", async () => {
  const set = rules("rules: [{ name: per-ip, policy: { algorithm: fixed-window, limit: 1, window: 1m } }]");
  const lines = [0, 10, 55, 60, 90, 300, 301].map((seconds) => lineAt("192.0.2.1", seconds));
  const [rule] = (await simulate([logOf(lines)], set)).rules;
  // Rejected at 10 and 55 s until 60 s, at 90 s until 120 s, and at 301 s until 360 s.
  expect(rule).toMatchObject({ limited: 4, longestLockoutMs: 59_000 });
});
