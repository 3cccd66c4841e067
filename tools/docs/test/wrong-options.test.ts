import { createLimiter, fixedWindow } from "@floodgate/core";
import { parseRules } from "@floodgate/rules";
import { compare, simulate, suggest } from "@floodgate/simulator";
import { memoryStore } from "@floodgate/store-memory";
import { expectLimited, expectNotLimited } from "@floodgate/testing";
import { describe, expect, it } from "vitest";
import { allOptions } from "./options.js";

// A misspelt option is an error, which lists the options that there are, and so is a value of a wrong type. TypeScript finds some of these
// mistakes, and JavaScript none.

const misspelt = { misspelt: 1 };
const text = "rules: [{ name: a, limit: 1, window: 1m }]";
const rules = parseRules(text);
const logs = [{ name: "access.log", open: () => bytes('203.0.113.9 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1\n') }];

async function* bytes(line: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(line);
}

/** Has what our functions look for in a client, a driver and a source of rules. */
function stub(...methods: string[]): object {
  return { status: "ready", options: {}, source: "here", ...Object.fromEntries(methods.map((name) => [name, () => undefined])) };
}

/** What a function takes before its options. Default: nothing. */
const argumentsBefore: Readonly<Record<string, () => unknown[] | Promise<unknown[]>>> = {
  clientKey: () => ["203.0.113.9"],
  decisionLog: () => [() => undefined],
  explainHeader: () => [() => false],
  prometheus: () => [undefined],
  fileRules: () => ["limits.yaml"],
  redisRules: () => [stub("call"), "rules"],
  liveRules: () => [stub("read", "watch")],
  pushRules: () => [stub("call"), "rules", text],
  simulate: () => [logs, rules],
  follow: () => [[], rules],
  survey: () => [logs, rules],
  compare: () => [logs, ["1/1m"]],
  suggest: () => [logs],
  formatOf: () => ["combined"],
  simulationReport: async () => [logs, rules, await simulate(logs, rules)],
  comparisonReport: async () => [logs, await compare(logs, ["1/1m"])],
  suggestionReport: async () => [logs, await suggest(logs)],
  databaseStore: () => [stub("load", "swap")],
  d1: () => [stub("prepare", "batch")],
  durableObjects: () => [stub("idFromName", "get")],
  libsql: () => [stub("batch")],
  mysql: () => [stub("execute", "getConnection")],
  postgres: () => [stub("query")],
  sqlite: () => [stub("prepare", "exec")],
  redisStore: () => [stub("evalsha", "call")],
};

/** They check their options later: when the app starts, or after their settings. */
const checkedLater = ["RateLimit", "serve", "gateway"];

const functions = allOptions().filter(({ name }) => !checkedLater.includes(name));

describe.each(functions)("$name of $entry", ({ entry, name, options }) => {
  it("rejects an unknown option, and lists its own", async () => {
    const { [name]: called } = await import(entry);
    const before = (await argumentsBefore[name]?.()) ?? [];
    const error = await (async () => called(...before, misspelt, { atMs: 0, command: "" }))().catch((error: unknown) => error);
    expect(error).toMatchObject({ code: "FLOODGATE_UNKNOWN_OPTION" });
    expect(options.filter((option) => !new RegExp(`\\b${option.name}\\b`).test((error as Error).message))).toEqual([]);
  });
});

/** Options without which a function has no valid ones. */
const needed: Readonly<Record<string, () => object>> = {
  ...Object.fromEntries(["fixedWindow", "slidingWindowLog", "gcra"].map((name) => [name, () => ({ limit: 5, window: "1m" })])),
  slidingWindowCounter: () => ({ limit: 5, window: "1m", buckets: 2 }),
  tokenBucket: () => ({ capacity: 5, refill: 1, every: "1s" }),
  leakyBucket: () => ({ capacity: 5, leak: 1, every: "1s" }),
  calendarWindow: () => ({ limit: 5, per: "month" }),
  concurrency: () => ({ limit: 5, hold: "30s" }),
  rateLimit: () => ({ limit: 5, window: "1m" }),
  limitFor: () => ({ limit: 5, window: "1m", key: "global", store: memoryStore() }),
  createLimiter: () => ({ name: "a", policy: fixedWindow({ limit: 5, window: "1m" }), store: memoryStore() }),
};

/** Of the simulator, whose other options are names of fields and texts that its command line checks. */
const numbers = ["reorder", "maxClients", "top", "grid", "settleMs", "pollMs", "ipv6Prefix"];

// Any `ifVersion` is only compared with the version that is stored.
const isChecked = (entry: string, option: string): boolean =>
  entry === "@floodgate/simulator" ? numbers.includes(option) : option !== "ifVersion";
const checked = functions.flatMap(({ entry, name, options }) =>
  options.filter((option) => isChecked(entry, option.name)).map((option) => ({ entry, name, option: option.name })),
);

it.each(checked)("$name of $entry rejects a value of a wrong type as $option", async ({ entry, name, option }) => {
  const { [name]: called } = await import(entry);
  const before = (await argumentsBefore[name]?.()) ?? [];
  const given = { ...needed[name]?.(), [option]: Symbol("wrong") };
  await expect((async () => called(...before, given, { atMs: 0, command: "" }))()).rejects.toMatchObject({
    code: expect.stringMatching(/^FLOODGATE_/),
  });
});

const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 5, window: "365d" }), store: memoryStore() });

it.each<[method: string, call: () => unknown]>([
  ["consume", () => limiter.consume("k", misspelt as object)],
  ["consume, beside a cost,", () => limiter.consume("k", { cost: 2, ...misspelt })],
  ["run", () => limiter.run("k", () => 1, misspelt as object)],
  ["reset", () => limiter.reset("k", misspelt as object)],
  ["block", () => limiter.block("k", "1h", misspelt as object)],
  ["unblock", () => limiter.unblock("k", misspelt as object)],
])("%s of a limiter rejects an unknown option, and changes nothing", async (_, call) => {
  await expect((async () => call())()).rejects.toMatchObject({ code: "FLOODGATE_UNKNOWN_OPTION" });
  expect(limiter.peek("k")).toMatchObject({ remaining: 5 });
});

it("assertions on responses reject an unknown expectation, because it would assert nothing", () => {
  const unknown = expect.objectContaining({ code: "FLOODGATE_UNKNOWN_OPTION" });
  expect(() => expectLimited({ status: 429, headers: {} }, { retryafter: 60 } as object)).toThrow(unknown);
  expect(() => expectNotLimited({ status: 200, headers: {} }, { left: 1 } as object)).toThrow(unknown);
});
