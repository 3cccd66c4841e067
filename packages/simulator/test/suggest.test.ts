import { parseRules } from "@floodgate/rules";
import { describe, expect, it } from "vitest";
import { simulate, suggest, suggestionText } from "../src/index.js";
import { leastValue } from "../src/measure/quantiles.js";
import { accessLog, lineAt, logOf, randomLog, randomNumbers, rules } from "./logs.js";

/** The option that is the limit: a bucket's capacity, else the burst or the limit. */
const limitOption = { "token-bucket": "capacity", "leaky-bucket": "capacity", gcra: "burst" } as Readonly<Record<string, string>>;

const logs = { "a real log": accessLog, "bursts of many clients": randomLog(11, 1000) };

describe.each(Object.entries(logs))("the suggestions for %s", (_, log) => {
  it.each([0, 0.2])("touch at most %f of the clients, and no lower limit does", async (touch) => {
    const suggestion = await suggest([logOf(log)], { touch, top: 1000 });
    const set = parseRules(suggestionText(suggestion), "limits.yaml");
    const simulation = await simulate([logOf(log)], set, { top: 1000 });
    const most = Math.floor(suggestion.clients * touch);
    expect(suggestion.rules.map(({ algorithm }) => algorithm).sort()).toEqual([
      "fixed-window",
      "gcra",
      "leaky-bucket",
      "sliding-window-counter",
      "sliding-window-log",
      "token-bucket",
    ]);
    for (const [i, rule] of suggestion.rules.entries()) {
      const { name, policy, mode, by, memory, ...replayed } = simulation.rules[i] as (typeof simulation.rules)[number];
      expect(rule).toMatchObject(replayed);
      expect(name).toBe(`suggested-${rule.algorithm}`);
      expect(rule.clientsLimited).toBeLessThanOrEqual(most);
      expect(rule.clientsLimited).toBe(rule.need.above);
      const option = limitOption[rule.algorithm] ?? "limit";
      const lower = { ...rule.options, [option]: (rule.options[option] as number) - 1 };
      if (lower[option] === 0) continue;
      const options = Object.entries({ algorithm: rule.algorithm, ...lower }).map(([key, value]) => `${key}: ${value}`);
      const stricter = await simulate([logOf(log)], rules(`rules: [{ name: stricter, policy: { ${options.join(", ")} } }]`));
      expect(stricter.rules[0]?.clientsLimited).toBeGreaterThan(most);
    }
  });
});

it("a suggestion is a rules file in which comments explain the numbers", async () => {
  // Twenty clients: the busiest makes 20 requests a minute, the next one 19, and so on.
  const lines = Array.from({ length: 20 }, (_, i) =>
    Array.from({ length: i + 1 }, (_, j) => lineAt(`192.0.2.${i + 1}`, 60 * i + 2 * j)),
  ).flat();
  const text = suggestionText(await suggest([logOf(lines)], { touch: 0.1 }));
  expect(text).toContain(`# Suggested by floodgate simulate --suggest, from 210 requests in 210 lines,
# 2026-11-20 12:00:00 to 2026-11-20 12:19:38 UTC, of 20 clients by ip.
# Each rule has the least limit that would have limited at most 10 % of the clients.
# That is at most 2 of 20 clients.`);
  expect(text).toContain(`#                p50     p90     p99   p99.9    most
#   any 1s         1       1       -       -       1
#   any 1m        10      18       -       -      20
#   any 1h        10      18       -       -      20
# What they rest on: p50 on the 10 heaviest, p90 on the 2 heaviest, p99 would need more clients, p99.9 would need more clients.`);
  expect(
    text,
  ).toContain(`  # limit 18: all but 2 of the clients used no more of a fixed window of 1m. With 95 % confidence it is 15 or more, maybe more than any client of this log has shown.
  # Replayed: it limits 2 of 20 clients (10.0 %) and 3 of 210 requests (1.4 %).
  # It stops of the heaviest clients: 192.0.2.20 (20 requests): 2, 192.0.2.19 (19 requests): 1, 192.0.2.18 (18 requests): none.
  - name: suggested-fixed-window
    key: "ip"
    policy: { algorithm: fixed-window, limit: 18, window: 1m }
    mode: shadow
`);
  expect(parseRules(text, "limits.yaml").rules).toHaveLength(6);
});

it("nothing of a log becomes a rule of the file", async () => {
  const evil = "x\u2028\u0085\ufffd\\n  - name: evil";
  const lines = Array.from({ length: 3 }, () => lineAt("192.0.2.1", 0, "GET / HTTP/1.1", evil));
  const suggestion = await suggest([logOf(lines)], { by: "header:user-agent", match: "GET /*" });
  expect(suggestion.rules[0]?.heaviest[0]?.key).toContain("evil");
  const { rules: parsed } = parseRules(suggestionText(suggestion), "limits.yaml");
  expect(parsed.map(({ name }) => name)).not.toContain("evil");
  expect(parsed[0]).toMatchObject({ key: "header:user-agent", match: { method: "GET", path: "/*" }, mode: "shadow" });
});

it("a log without requests, and one that can be read only once, are refused", async () => {
  const none = { code: "FLOODGATE_NO_REQUESTS", message: expect.stringContaining("no request that counts. Give a log with requests.") };
  await expect(suggest([logOf("")])).rejects.toMatchObject(none);
  await expect(suggest([{ ...logOf(accessLog), once: true }])).rejects.toThrow("test.log can be read only once");
});

describe("the least value that a share is above", () => {
  const sorted = (values: readonly number[]): Float64Array => Float64Array.from(values).sort().reverse();

  it("is the least such value", () => {
    const random = randomNumbers(5);
    for (let round = 0; round < 300; round++) {
      const values = sorted(Array.from({ length: 1 + Math.floor(random() * 50) }, () => Math.floor(random() * 20)));
      const share = Math.floor(random() * 100) / 100;
      const { value, above } = leastValue(values, share);
      const aboveOf = (bound: number): number => values.filter((other) => other > bound).length;
      const fits = [...values].filter((candidate) => aboveOf(candidate) <= Math.floor(values.length * share + 1e-9));
      expect(value).toBe(Math.min(...fits));
      expect(above).toBe(aboveOf(value));
    }
  });

  it("lies in its interval with 95 % confidence", () => {
    const random = randomNumbers(9);
    for (const share of [0.01, 0.1, 0.5]) {
      let inside = 0;
      for (let round = 0; round < 1000; round++) {
        const { low, high } = leastValue(sorted(Array.from({ length: 400 }, random)), share);
        // The values are uniform, so this is where the share lies.
        if (low <= 1 - share && 1 - share <= (high ?? 1)) inside++;
      }
      expect(inside).toBeGreaterThan(935);
    }
  });
});
