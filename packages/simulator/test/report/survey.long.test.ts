import { describe, expect, it } from "vitest";
import { allRuns } from "../../../../test/runs.js";
import { type Grid, type SimulateOptions, simulate, survey } from "../../src/index.js";
import { accessLog, logOf, randomLog, rules } from "../logs.js";

const log = randomLog(7, 700);

/** Simulates a rules file for each limit of the grid, in which `LIMIT` stands for it. */
async function expectSimulated(content: string, yaml: string, own: number, name: string, more: SimulateOptions = {}): Promise<Grid> {
  const options = { grid: 6, ...more };
  const set = rules(yaml.replace("LIMIT", String(own)));
  const found = await survey([logOf(content)], set, options);
  const at = set.rules.findIndex((rule) => rule.name === name);
  const grid = found.rules[at]?.grid as Grid;
  for (const [i, { limit, limited, clientsLimited, limitedAt }] of grid.points.entries()) {
    // `npm run test:long` simulates them all.
    if (!allRuns && i % 3 !== 0 && i !== grid.own) continue;
    const { rules: simulated } = await simulate([logOf(content)], rules(yaml.replace("LIMIT", String(limit))), more);
    expect({ limit, limited, clientsLimited }).toEqual({
      limit,
      limited: simulated[at]?.limited,
      clientsLimited: simulated[at]?.clientsLimited,
    });
    expect(limitedAt.reduce((sum, value, i) => sum + (i % 2 === 1 ? value : 0), 0)).toBe(limited);
  }
  expect(grid.points.map(({ limit }) => limit)).toEqual([...new Set(grid.points.map(({ limit }) => limit))].sort((a, b) => a - b));
  expect(grid.points[grid.own]?.limit).toBe(own);
  expect(new Set(grid.points.map(({ limited }) => limited)).size).toBeGreaterThan(3);
  return grid;
}

describe("the grid of a rule is what simulate says for each of its limits", () => {
  it.each([
    ["fixed-window", "limit: LIMIT, window: 1m"],
    ["sliding-window-log", "limit: LIMIT, window: 1m"],
    ["sliding-window-log", "limit: LIMIT, window: 1m, countRejected: true"],
    ["sliding-window-counter", "limit: LIMIT, window: 1m"],
    ["sliding-window-counter", "limit: LIMIT, window: 1m, buckets: 6"],
    ["token-bucket", "capacity: LIMIT, refill: 7, every: 10s"],
    ["token-bucket", "capacity: LIMIT, refill: 7, every: 10s, style: interval"],
    ["leaky-bucket", "capacity: LIMIT, leak: 1, every: 1s"],
    ["leaky-bucket", "capacity: LIMIT, leak: 1, every: 1s, maxDelayMs: 9000"],
    ["gcra", "limit: 20, window: 1m, burst: LIMIT"],
  ])("%s with %s", async (algorithm, options) => {
    await expectSimulated(log, `rules: [{ name: a, policy: { algorithm: ${algorithm}, ${options} } }]`, 25, "a");
  });

  it.each([
    ["in shadow mode", "rules: [{ name: a, limit: LIMIT, window: 1m, mode: shadow }]"],
    ["with a ban", "rules: [{ name: a, limit: LIMIT, window: 1m, ban: { after: 3, within: 1m, for: 10m } }]"],
    ["with costs", "rules: [{ name: a, limit: LIMIT, window: 1m, cost: 3 }]"],
    ["beside a rule that rejects", "rules: [{ name: a, limit: LIMIT, window: 1m }, { name: b, limit: 60, window: 10m }]"],
    ["before a global limit", "rules: [{ name: a, limit: LIMIT, window: 1m }, { name: b, key: global, limit: 200, window: 10m }]"],
    [
      "with refills at intervals after a global limit",
      "rules: [{ name: b, key: global, limit: 200, window: 10m }, { name: a, policy: { algorithm: token-bucket, capacity: LIMIT, refill: 20, every: 2m, style: interval } }]",
    ],
    [
      "of a log that counts rejections beside another one",
      "rules: [{ name: a, policy: { algorithm: sliding-window-log, limit: LIMIT, window: 1m, countRejected: true } }, { name: b, key: global, policy: { algorithm: sliding-window-log, limit: 300, window: 10m, countRejected: true } }]",
    ],
    [
      "beside a limit of 0",
      "rules: [{ name: a, limit: LIMIT, window: 1m }, { name: b, match: { method: POST }, limit: 0, window: 1m }, { name: c, key: global, limit: 200, window: 10m }]",
    ],
    [
      "in shadow mode beside a rule that rejects",
      "rules: [{ name: b, limit: 30, window: 5m }, { name: a, limit: LIMIT, window: 1m, mode: shadow }]",
    ],
    ["beside shadows", "rules: [{ name: b, limit: 30, window: 5m, mode: shadow }, { name: a, limit: LIMIT, window: 1m }]"],
    [
      "of requests at once beside a global limit",
      "rules: [{ name: a, policy: { algorithm: concurrency, limit: LIMIT, hold: 30s } }, { name: b, key: global, limit: 200, window: 10m }]",
    ],
    [
      "beside a limit of requests at once",
      "rules: [{ name: a, limit: LIMIT, window: 1m }, { name: b, policy: { algorithm: concurrency, limit: 20, hold: 30s } }]",
    ],
    ["of requests at once", "rules: [{ name: a, policy: { algorithm: concurrency, limit: LIMIT, hold: 30s } }]"],
    ["with an exemption", "exempt: { ips: [10.0.0.0/31] }\nrules: [{ name: a, limit: LIMIT, window: 1m }]"],
  ])("%s", async (_, yaml) => {
    await expectSimulated(log, yaml, 25, "a");
  });

  it("with plans and keys of the app", async () => {
    const lines = randomLog(3, 600)
      .trim()
      .split("\n")
      .map((line, i) => line.replace("curl/8", i % 3 === 0 ? "pro" : i % 3 === 1 ? "free" : "-"));
    const yaml = "rules: [{ name: a, key: user, limit: LIMIT, window: 1m, plans: { pro: { limit: 30 } }, onMissingKey: skip }]";
    await expectSimulated(lines.join("\n"), yaml, 12, "a", { plan: "header:user-agent", keys: { user: "remote_addr" } });
  });

  it("of the clients that are measured, and the report says so if there are more", async () => {
    const set = rules("rules: [{ name: a, limit: 20, window: 1m }]");
    const all = await survey([logOf(log)], set, { grid: 6 });
    expect(all.notes).toEqual([]);
    const some = await survey([logOf(log)], set, { grid: 6, maxClients: 10 });
    expect(some.notes).toEqual([
      "Other limits were tried on the first 10 clients of a rule only, so their numbers are too low. Raise --max-clients.",
    ]);
  });

  it("for a real log", async () => {
    const { points } = await expectSimulated(accessLog, "rules: [{ name: a, limit: LIMIT, window: 1m }]", 20, "a");
    expect(points.at(-1)).toMatchObject({ limited: 0, clientsLimited: 0 });
  });
});

it("the burst of a rule is shown though no other limits were tried for it", async () => {
  const many = Array.from({ length: 13 }, (_, i) => `{ name: rule-${i}, limit: 20, window: 1m, mode: shadow }`);
  const { rules: surveyed, notes } = await survey([logOf(log)], rules(`rules: [${many.join(", ")}]`), { grid: 2 });
  expect(notes).toEqual(["Other limits were tried for the first 12 rules only, so not for rule-12."]);
  expect(surveyed[12]?.grid).toBe(undefined);
  expect(surveyed[12]?.burst?.count).toBeGreaterThan(0);
  expect(surveyed[12]?.burst).toEqual(surveyed[0]?.burst);
});
