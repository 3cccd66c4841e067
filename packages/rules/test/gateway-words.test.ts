import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { gatewayAdvice } from "../src/gateway-words.js";
import { parseRules, type RulesError } from "../src/index.js";

// `broken/gateway-words.txt` holds the advice for each word.

const lines = readFileSync(join(__dirname, "broken/gateway-words.txt"), "utf8").trim().split("\n");
const written = lines.flatMap((line) => /Write (?!mode)(.*)\.$/.exec(line)?.[1] ?? []);

it("what is advised for a word of a gateway is valid in a rule", () => {
  expect(written.length).toBeGreaterThan(20);
  for (const options of new Set(written)) {
    const own: object = parse(`{ ${options} }`);
    // A part of a rule: what it lacks is what every rule needs.
    const isWhole = "policy" in own;
    const base = isWhole ? {} : "refill" in own ? undefined : { limit: 1, window: "1m" };
    const rule = base === undefined ? { policy: { algorithm: "token-bucket", capacity: 20, ...own } } : { ...base, ...own };
    expect(() => parseRules(JSON.stringify({ rules: [{ name: "a", ...rule }] })), options).not.toThrow();
  }
});

it("a rate is read as each gateway writes it", () => {
  const adviceFor = (rule: object): string => {
    try {
      parseRules(JSON.stringify({ rules: [{ name: "a", ...rule }] }));
    } catch (error) {
      return (error as RulesError).problems[0]?.message ?? "";
    }
    return "";
  };
  for (const rate of ["10r/s", "10/s", "10 / sec", "10 requests per second", "10req/1s", " 10 per second "]) {
    expect(adviceFor({ rate }), rate).toBe('rules[0] has no option `rate`. Write limit: 10, window: "1s".');
  }
  for (const [rate, advice] of [
    ["600r/m", 'limit: 600, window: "1m"'],
    ["5 per 15 minutes", 'limit: 5, window: "15m"'],
    ["1000/day", 'limit: 1000, window: "1d"'],
    ["1000/month", "policy: { algorithm: calendar-window, limit: 1000, per: month }"],
    ["0r/s", "limit: 100"],
    ["constructor", "limit: 100"],
  ]) {
    expect(adviceFor({ rate }), rate).toBe(`rules[0] has no option \`rate\`. Write ${advice}.`);
  }
  // As docs/migrating/from-proxies.md says: nginx lets a request and its burst pass, and holds the burst without `nodelay`.
  for (const [rule, policy] of [
    [{ rate: "30r/m", burst: 4, nodelay: true }, '{ algorithm: token-bucket, capacity: 5, refill: 30, every: "1m" }'],
    [{ rate: "10r/s", burst: 20 }, '{ algorithm: leaky-bucket, capacity: 21, leak: 10, every: "1s" }'],
    [{ rate: "10/s", burst: 20 }, '{ algorithm: token-bucket, capacity: 20, refill: 10, every: "1s" }'],
    [{ average: 100, burst: 50, period: "1m" }, '{ algorithm: token-bucket, capacity: 50, refill: 100, every: "1m" }'],
  ] as const)
    expect(adviceFor(rule)).toContain(`Write policy: ${policy}.`);
  for (const word of ["id", "keyGenerator"])
    expect(adviceFor({ limit: 5, window: "1m", [word]: "user" })).toBe(`rules[0] has no option \`${word}\`. Write key: ip.`);
  for (const word of ["constructor", "toString", "__proto__x", "valueOf"])
    expect(adviceFor({ [word]: 5 })).toContain("The options are name");
  expect(adviceFor({ unit: null, period: [], rate_limit: { rate_limit: {} } })).toContain("has no option");
});

it("a map with thousands of unknown words is read once", () => {
  let reads = 0;
  const words = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`word${i}`, 1]));
  const map = new Proxy(words, {
    ownKeys(target) {
      reads++;
      return Reflect.ownKeys(target);
    },
  });
  for (const word of Object.keys(words)) gatewayAdvice(word, map, ["limit", "window"]);
  expect(reads).toBe(1);
});
