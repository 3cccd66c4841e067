import { afterEach, describe, expect, it, vi } from "vitest";
import { survey } from "../../src/index.js";
import { Replay } from "../../src/replay/replay.js";
import { World } from "../../src/report/lanes.js";
import { logOf, randomLog, rules } from "../logs.js";

const log = randomLog(11, 400);
const requests = log.trim().split("\n").length;

/** How often a middleware decides a request, and how often one does for the report alone, under another limit. */
async function workOf(yaml: string, grid: number): Promise<{ decided: number; inWorlds: number }> {
  const decide = vi.spyOn(Replay.prototype, "decide");
  const inWorlds = vi.spyOn(World.prototype, "decide");
  await survey([logOf(log)], rules(yaml), { grid });
  return { decided: decide.mock.calls.length, inWorlds: inWorlds.mock.calls.length };
}

afterEach(() => vi.restoreAllMocks());

describe("the report runs the middleware twice for each request, however many limits are tried", () => {
  const limit = (name: string, key: string, of: number): string => `{ name: ${name}, key: ${key}, limit: ${of}, window: 1m }`;

  it.each([
    ["one rule", [limit("a", "ip", 5)]],
    ["two rules that share requests", [limit("a", "ip", 5), limit("b", "global", 20)]],
    ["four rules that share requests", [limit("a", "ip", 5), limit("b", "global", 20), limit("c", "ip", 9), limit("d", "global", 30)]],
  ])("%s", async (_, all) => {
    for (const grid of [2, 8, 30]) {
      expect(await workOf(`rules: [${all.join(", ")}]`, grid)).toEqual({ decided: 2 * requests, inWorlds: 0 });
      vi.restoreAllMocks();
    }
  });
});

it("replays of one request leave nothing on it", async () => {
  const kept: number[] = [];
  const { decide } = Replay.prototype;
  vi.spyOn(Replay.prototype, "decide").mockImplementation(function (this: Replay, request) {
    decide.call(this, request);
    kept.push(Reflect.ownKeys(request).filter((name) => typeof name === "symbol").length);
  });
  await survey([logOf(log)], rules("rules: [{ name: a, limit: 5, window: 1m, ban: { after: 3, within: 1m, for: 5m } }]"), { grid: 6 });
  expect(kept.length).toBeGreaterThan(3 * requests);
  expect(Math.max(...kept)).toBe(0);
});
