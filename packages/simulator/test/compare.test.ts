import { describe, expect, it } from "vitest";
import { compare, comparisonText, parsePolicy, simulate } from "../src/index.js";
import { lineAt, logOf, randomLog, rules } from "./logs.js";

const plain = (_: string, text: string): string => text;

describe("a policy as a text", () => {
  it.each([
    ["100/1m", { algorithm: "sliding-window-counter", limit: 100, windowMs: 60_000, buckets: 1 }],
    ["sliding-window-counter 100/1m 6", { limit: 100, buckets: 6 }],
    ["fixed-window 5/15m", { algorithm: "fixed-window", limit: 5, windowMs: 900_000 }],
    ["token-bucket 20 10/s", { algorithm: "token-bucket", capacity: 20, refill: 10, everyMs: 1000, style: "smooth" }],
    ["token-bucket 20 10/s interval", { style: "interval" }],
    ["Token-Bucket refill=10 every=1s capacity=20", { capacity: 20, refill: 10, everyMs: 1000 }],
    ["leaky-bucket 10 5/s", { algorithm: "leaky-bucket", capacity: 10, leak: 5, everyMs: 1000 }],
    ["gcra 100/1m 20", { algorithm: "gcra", limit: 100, windowMs: 60_000, burst: 20 }],
    ["sliding-window-log 100/1h countRejected", { algorithm: "sliding-window-log", countRejected: true }],
    ["sliding-window-log 100/1h countRejected=false", { countRejected: false }],
  ])("%s", (text, policy) => {
    expect(parsePolicy(text)).toMatchObject(policy);
  });

  it.each([
    ["calendar-window 100/1d", /cannot be compared: a calendar window is a quota.* fixed-window 100\/1d counts the same\.$/],
    ["concurrency 5 30s", "cannot be compared: it counts requests that run at the same time, and a log does not say when a request ended."],
    ["tokenbucket 20 10/s", "Did you mean token-bucket?"],
    ["fixed-window 5/15m 7", "fixed-window has no option for the number 7"],
    ["fixed-window 5/15x", '"5/15x" is neither a rate'],
    ["fixed-window 5/15m 6/1m", "says `limit` twice"],
    ["fixed-window", "has no rate. Write '100/1m'"],
    ["20", "has no rate"],
    ["token-bucket 20", "has no rate"],
    ["", "neither a rate"],
  ])("%j is refused", (text, message) => {
    expect(() => parsePolicy(text)).toThrow(message);
  });
});

it("each policy decides as if it were alone, on one reading of the log", async () => {
  const policies = ["5/1m", "fixed-window 5/1m", "sliding-window-log 5/1m", "token-bucket 5 5/1m", "leaky-bucket 5 5/1m", "gcra 5/1m 2"];
  const log = randomLog(3, 2000);
  let opened = 0;
  const source = logOf(log);
  const counted = {
    ...source,
    open: () => {
      opened++;
      return source.open();
    },
  };
  const comparison = await compare([counted], policies, { window: "1m" });
  expect(opened).toBe(1);
  for (const [i, text] of policies.entries()) {
    const { limited, clientsLimited } = comparison.policies[i] as (typeof comparison.policies)[number];
    const alone = await compare([logOf(log)], [text], { window: "1m" });
    expect(alone.policies).toEqual([comparison.policies[i]]);
    expect([limited, clientsLimited]).not.toContain(0);
  }
  const set = rules("rules: [{ name: per-ip, policy: { algorithm: token-bucket, capacity: 5, refill: 5, every: 1m } }]");
  const [enforced] = (await simulate([logOf(log)], set)).rules;
  expect(comparison.policies[3]).toMatchObject({
    limited: enforced?.limited,
    clientsLimited: enforced?.clientsLimited,
    topLimited: enforced?.topLimited,
  });
});

it("an edge-of-window burst passes a fixed window twice, and the report says so", async () => {
  const burst = (from: number) => Array.from({ length: 10 }, () => lineAt("192.0.2.1", from));
  const log = [...burst(59), ...burst(60), lineAt("192.0.2.2", 61)];
  const comparison = await compare([logOf(log)], ["fixed-window 10/1m", "sliding-window-log 10/1m"]);
  expect(comparison).toMatchObject({
    windowMs: 60_000,
    policies: [
      { limited: 0, clientsLimited: 0, worstWindow: { units: 20, key: "192.0.2.1" }, burst: { units: 10 } },
      { limited: 10, clientsLimited: 1, worstWindow: { units: 10, key: "192.0.2.1" }, burst: { units: 10 } },
    ],
    differing: [{ key: "192.0.2.1", requests: 20, limited: [0, 10] }],
  });
  expect(comparisonText(comparison, plain)).toBe(`21 requests in 21 lines, format combined
2026-11-20 12:00:59 to 2026-11-20 12:01:01 UTC
21 of them counted, by ip, for 2 clients

     policy                         limited   share  clients limited   share  most in 1m  most in 1s  longest lock-out
  1  10 per 1m, fixed-window              0     0 %                0     0 %          20          10                 -
  2  10 per 1m, sliding-window-log       10  47.6 %                1  50.0 %          10          10               59s

They differ most on
  client     requests  limited by 1  limited by 2
  192.0.2.1        20             0            10
`);
});

it("counts only requests that match, by the key that is said", async () => {
  const lines = [
    lineAt("192.0.2.1", 1, "POST /login HTTP/1.1", "a"),
    lineAt("192.0.2.2", 1, "POST /login HTTP/1.1", "a"),
    lineAt("192.0.2.1", 1),
  ];
  const options = { match: "POST /login", by: "header:user-agent" };
  expect(await compare([logOf(lines)], ["1/1m"], options)).toMatchObject({
    requests: 3,
    policies: [{ requests: 2, clients: 1, limited: 1 }],
  });
  await expect(compare([logOf(lines)], ["1/1m"], { match: "login" })).rejects.toThrow('Write --match "POST /login"');
});
