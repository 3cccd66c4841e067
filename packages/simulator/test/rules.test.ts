import { type FloodgateEvent, observe } from "@floodgate/core";
import { expect, it, vi } from "vitest";
import { simulate, simulationJson, simulationText } from "../src/index.js";
import { lineAt, logOf, rules } from "./logs.js";

const plain = (_: string, text: string): string => text;

it("a leaky bucket's requests wait, and their time in the queue is added up", async () => {
  const set = rules("rules: [{ name: queue, policy: { algorithm: leaky-bucket, capacity: 3, leak: 1, every: 1s } }]");
  const simulation = await simulate([logOf(Array.from({ length: 5 }, () => lineAt("192.0.2.1", 0)))], set);
  // The first one passes at once, the next two after one and two seconds, and there is no place for the others.
  expect(simulation.rules[0]).toMatchObject({ allowed: 3, limited: 2, delayed: 2, queuedMs: 3000, longestQueuedMs: 2000 });
  expect(simulationText(simulation, plain)).toContain("held 2 requests back for 3s in all, the longest for 2s");
});

it("a request that one rule rejects counts in no other rule; a rule in shadow mode rejects nothing", async () => {
  const two = (mode: string) =>
    rules(`rules:
  - { name: first, policy: { algorithm: fixed-window, limit: 2, window: 1m }, mode: ${mode} }
  - { name: second, policy: { algorithm: fixed-window, limit: 3, window: 1m } }`);
  const log = logOf(Array.from({ length: 5 }, (_, i) => lineAt("192.0.2.1", i)));
  const enforced = await simulate([log], two("enforce"));
  expect(enforced).toMatchObject({
    rejected: 3,
    rules: [
      { requests: 5, limited: 3 },
      { requests: 2, limited: 0 },
    ],
  });
  const shadow = await simulate([log], two("shadow"));
  expect(shadow).toMatchObject({
    rejected: 2,
    rules: [
      { mode: "shadow", limited: 3 },
      { requests: 5, limited: 2 },
    ],
  });
});

it("bans begin and end at the times of the log", async () => {
  const set = rules(
    "rules: [{ name: per-ip, policy: { algorithm: fixed-window, limit: 1, window: 1s }, ban: { after: 2, within: 1m, for: 1h } }]",
  );
  const lines = [0, 0, 0, 10, 3599, 3601].map((seconds) => lineAt("192.0.2.1", seconds));
  const { rules: measured } = await simulate([logOf(lines)], set);
  // Rejected twice at once, then banned for an hour.
  expect(measured).toMatchObject([{ allowed: 2, limited: 4, bans: 1, longestLockoutMs: 3_600_000 }]);
});

it("matches paths and methods as the middleware does", async () => {
  const set = rules(
    "rules: [{ name: posts, match: { method: GET, path: /posts/:id }, policy: { algorithm: fixed-window, limit: 9, window: 1m } }]",
  );
  const requests = [
    "GET /posts/1 HTTP/1.1",
    "HEAD /Posts/%31/?page=2 HTTP/1.1",
    "GET http://example.com/posts/2 HTTP/1.1",
    "POST /posts/1 HTTP/1.1",
    "GET /posts HTTP/1.1",
  ];
  const { rules: measured } = await simulate([logOf(requests.map((request) => lineAt("192.0.2.1", 1, request)))], set);
  expect(measured).toMatchObject([{ requests: 3 }]);
});

it("requests without a key count by address, or as the rule says", async () => {
  const lines = Array.from({ length: 3 }, () => lineAt("192.0.2.1", 1, undefined, "-"));
  const measured = async (words: string) =>
    (await simulate([logOf(lines)], rules(`rules: [{ name: api, key: header:user-agent, limit: 1, window: 1m${words} }]`))).rules[0];
  expect(await measured("")).toMatchObject({ requests: 3, limited: 2, clients: 1, topLimited: [{ key: "missing-key-ip:192.0.2.1" }] });
  expect(await measured(", onMissingKey: skip")).toMatchObject({ requests: 0, keyless: 3 });
  expect(await measured(", onMissingKey: reject")).toMatchObject({ requests: 0, keyless: 3 });
});

it("a limit of 0 locks out forever, which is null in JSON", async () => {
  const simulation = await simulate([logOf([lineAt("192.0.2.1", 1)])], rules("rules: [{ name: off, limit: 0, window: 1m }]"));
  expect(simulation.rules[0]).toMatchObject({ limited: 1, longestLockoutMs: Number.POSITIVE_INFINITY });
  expect(JSON.parse(JSON.stringify(simulationJson(simulation)))).toMatchObject({
    rules: [{ longestLockoutMs: null, clientsLimitedShare: 1 }],
  });
  expect(simulationText(simulation, plain)).toContain("longest lock-out forever");
});

it("keys that a store would hold at once are counted exactly, with what they need", async () => {
  const set = rules("rules: [{ name: per-ip, policy: { algorithm: fixed-window, limit: 9, window: 1m } }]");
  // Windows end at whole minutes: three keys in the first one, two in the second.
  const lines = [
    [0, 1, 2].map((client) => lineAt(`192.0.2.${client}`, 10 * client)),
    [1, 2].map((client) => lineAt(`192.0.2.${client}`, 60 + client)),
  ].flat();
  const { rules: measured } = await simulate([logOf(lines)], set);
  expect(measured).toMatchObject([{ keysAtOnce: 3, memory: { inMemory: 3 * 124, inRedis: 3 * 120 } }]);
});

it("a grant counts as long as it is in force now, and a note says so", async () => {
  const words = "limit: 1, window: 1m, plans: { pro: { limit: 2 } }";
  const set = rules(`rules:
  - { name: now, ${words}, grants: [{ key: 192.0.2.1, plan: pro, until: 9999-12-31 }] }
  - { name: ended, ${words}, mode: shadow, grants: [{ key: 192.0.2.1, plan: pro, until: 2026-11-21 }] }`);
  vi.setSystemTime("2026-11-22");
  const simulation = await simulate([logOf(Array.from({ length: 3 }, () => lineAt("192.0.2.1", 1)))], set);
  vi.useRealTimers();
  expect(simulation.rules).toMatchObject([{ limited: 1 }, { limited: 2 }]);
  expect(simulation.notes.join()).toContain("The grants that are in force now count");
});

it("a replay is not traffic of the app: who observes the process hears of no decision", async () => {
  const events: FloodgateEvent[] = [];
  const stop = observe((event) => events.push(event));
  try {
    const set = rules("rules: [{ name: per-ip, limit: 1, window: 1m }]");
    const [rule] = (await simulate([logOf([lineAt("192.0.2.1", 0), lineAt("192.0.2.1", 1)])], set)).rules;
    expect(rule).toMatchObject({ allowed: 1, limited: 1 });
  } finally {
    stop();
  }
  expect(events).toEqual([]);
});
