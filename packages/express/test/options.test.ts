import { createLimiter, fixedWindow, gcra, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { expect, test } from "vitest";
import { rateLimit } from "../src/index.js";

const policy = fixedWindow({ limit: 5, window: "1m" });
const rule = { name: "a", limit: 1, window: "1s" } as const;

test.each<[string, unknown, string, RegExp]>([
  [
    "nothing",
    undefined,
    "FLOODGATE_INVALID_OPTION",
    /takes an object of options, but was given undefined. Write rateLimit\(\{ limit: 100, window: "1m" \}\)/,
  ],
  [
    "no limit",
    {},
    "FLOODGATE_MISSING_LIMIT",
    /a limit is needed, but there was neither `limit` nor `window`. Write \{ limit: 100, window: "1m" \}/,
  ],
  ["a limit without a window", { limit: 5 }, "FLOODGATE_MISSING_LIMIT", /`limit` but no `window`/],
  ["a window without a limit", { window: "1m" }, "FLOODGATE_MISSING_LIMIT", /`window` but no `limit`/],
  ["NaN", { limit: Number.NaN, window: "1m" }, "FLOODGATE_INVALID_OPTION", /`limit` must be a whole number.*but was NaN/],
  ["a fortnight", { limit: 1, window: "1 fortnight" }, "FLOODGATE_INVALID_DURATION", /"1 fortnight".*Write window: "15m"/],
  ["a window of zero", { limit: 1, window: 0 }, "FLOODGATE_INVALID_DURATION", /`window`/],
  [
    "a negative cost",
    { limit: 1, window: "1m", cost: -1 },
    "FLOODGATE_INVALID_COST",
    /whole number of at least 1, or 0 for a free request, but was -1/,
  ],
  [
    "an unknown algorithm",
    { policy: { algorithm: "sliding-windw-log", limit: 1, window: "1m" } },
    "FLOODGATE_UNKNOWN_ALGORITHM",
    /Did you mean "sliding-window-log"/,
  ],
  ["an invalid policy", { policy: "fast" }, "FLOODGATE_NO_POLICY", /there was "fast"/],
  ["limit and policy", { limit: 1, window: "1m", policy }, "FLOODGATE_CONFLICTING_OPTIONS", /cannot stand beside `policy`/],
  [
    "limit and rules",
    { limit: 1, window: "1m", rules: [rule] },
    "FLOODGATE_CONFLICTING_OPTIONS",
    /`limit`, `window` cannot stand beside them/,
  ],
  ["policy and rules", { policy, rules: [rule] }, "FLOODGATE_CONFLICTING_OPTIONS", /`policy` cannot stand beside them/],
  ["no rules", { rules: [] }, "FLOODGATE_INVALID_OPTION", /at least one rule/],
  ["a source without rules", { rules: { subscribe: () => () => undefined } }, "FLOODGATE_INVALID_OPTION", /at least one rule/],
  ["a rule that is null", { rules: [null] }, "FLOODGATE_INVALID_OPTION", /rules\[0\] takes an object/],
  ["two rules of one name", { rules: [rule, rule] }, "FLOODGATE_DUPLICATE_NAME", /rules\[1\]: the name "a" is used by an earlier rule/],
  ["a rule without a name", { rules: [{ limit: 1, window: "1s" }] }, "FLOODGATE_INVALID_OPTION", /`name` must be 1 to 128 printable ASCII/],
  ["a name that no header can hold", { name: "é", limit: 1, window: "1s" }, "FLOODGATE_INVALID_OPTION", /`name`.*but was "é"/],
  [
    "an unknown key",
    { limit: 1, window: "1m", key: "usr", keys: { user: () => "u" } },
    "FLOODGATE_UNKNOWN_KEY",
    /but was "usr". Did you mean "user"/,
  ],
  ["a key in a rule that is unknown", { rules: [{ ...rule, key: "user" }] }, "FLOODGATE_UNKNOWN_KEY", /rules\[0\].*but was "user"/],
  [
    "a key that is redefined",
    { limit: 1, window: "1m", keys: { ip: () => "x" } },
    "FLOODGATE_CONFLICTING_OPTIONS",
    /cannot define "ip" anew/,
  ],
  [
    "keys that are not functions",
    { limit: 1, window: "1m", keys: { user: "id" } },
    "FLOODGATE_INVALID_OPTION",
    /`keys.user` must be a function/,
  ],
  ["a misspelt option", { limit: 1, window: "1m", onLimitted: () => {} }, "FLOODGATE_UNKNOWN_OPTION", /Did you mean `onLimited`/],
  ["a misspelt mode", { limit: 1, window: "1m", mode: "shadwo" }, "FLOODGATE_INVALID_OPTION", /Did you mean "shadow"/],
  [
    "an unknown onMissingKey",
    { limit: 1, window: "1m", onMissingKey: "allow" },
    "FLOODGATE_INVALID_OPTION",
    /must be one of "ip", "skip", "reject", "error"/,
  ],
  [
    'onMissingKey: "ip" with key: "ip"',
    { limit: 1, window: "1m", onMissingKey: "ip" },
    "FLOODGATE_CONFLICTING_OPTIONS",
    /cannot stand in for `key: "ip"`/,
  ],
  ["a prefix beyond an address", { limit: 1, window: "1m", ipv6Prefix: 129 }, "FLOODGATE_INVALID_OPTION", /1 to 128 bits, but was 129/],
  [
    "an invalid decisionName",
    { limit: 1, window: "1m", decisionName: "rate-limit" },
    "FLOODGATE_INVALID_OPTION",
    /`decisionName` must be a valid property name, but was "rate-limit"/,
  ],
  [
    "an invalid timeoutMs",
    { limit: 1, window: "1m", timeoutMs: "1s" },
    "FLOODGATE_INVALID_OPTION",
    /rateLimit: `timeoutMs` must be a whole number.*but was "1s". Write timeoutMs: 100/,
  ],
  [
    "a misspelt onStoreError",
    { limit: 1, window: "1m", onStoreError: "dney" },
    "FLOODGATE_INVALID_OPTION",
    /rateLimit: `onStoreError` must be "allow", "deny" or a store.*but was "dney". Did you mean "deny"/,
  ],
  [
    "an invalid share",
    { limit: 1, window: "1m", onStoreError: { store: memoryStore(), share: 4 } },
    "FLOODGATE_INVALID_OPTION",
    /rateLimit: onStoreError: `share`.*but was 4. Write share: 1 \/ 4/,
  ],
  [
    "an object without the methods of a store",
    { limit: 1, window: "1m", store: {} },
    "FLOODGATE_INVALID_OPTION",
    /Write store: memoryStore\(\)/,
  ],
  [
    "a URL as a store",
    { limit: 1, window: "1m", store: "redis://:hunter2@10.0.0.1" },
    "FLOODGATE_INVALID_OPTION",
    /^(?!.*hunter2).*`store` must be a store, but was a text. For Redis write store: redisStore\(new Redis\(url\)\), with import { redisStore } from "@floodgate\/store-redis" and import { Redis } from "ioredis"/,
  ],
  [
    "an uncalled memoryStore",
    { limit: 1, window: "1m", store: memoryStore },
    "FLOODGATE_INVALID_OPTION",
    /the function memoryStore. Call it: store: memoryStore\(\)/,
  ],
  [
    "a store of express-rate-limit",
    { limit: 1, window: "1m", store: { increment() {} } },
    "FLOODGATE_INVALID_OPTION",
    /a store of another library. Write store: memoryStore\(\), or redisStore/,
  ],
  [
    "an uncalled policy",
    { policy: tokenBucket },
    "FLOODGATE_NO_POLICY",
    /`policy` is tokenBucket itself, not what it makes. Call it: policy: tokenBucket\(\{ ... \}\)/,
  ],
  [
    "an uncalled policy in a rule",
    { rules: [{ name: "a", policy: slidingWindowLog }] },
    "FLOODGATE_NO_POLICY",
    /rules\[0\].*policy: slidingWindowLog\(/,
  ],
  [
    "a limit that is a function",
    { limit: () => 5, window: "1m" },
    "FLOODGATE_INVALID_OPTION",
    /was a function. Write plans, or policy: \(request\) =>/,
  ],
  [
    "a cost above the limit",
    { limit: 5, window: "1m", cost: 6 },
    "FLOODGATE_INVALID_COST",
    /`cost` of 6 is above the limit, 5, so every request/,
  ],
  [
    "a cost above the limit of each plan",
    { limit: 5, window: "1m", cost: 21, plan: () => "pro", plans: { pro: { limit: 20 }, off: { limit: 0 } } },
    "FLOODGATE_INVALID_COST",
    /above the limit, 20,/,
  ],
  [
    "a skip that is not a function",
    { limit: 1, window: "1m", skip: true },
    "FLOODGATE_INVALID_OPTION",
    /`skip` must be a function, but was true/,
  ],
  [
    "unknown headers",
    { limit: 1, window: "1m", headers: "draft-9" },
    "FLOODGATE_INVALID_OPTION",
    /has no format "draft-9". Write headers: "standard"/,
  ],
  [
    "a regular expression as match",
    { rules: [{ ...rule, match: /^\/posts/ }] },
    "FLOODGATE_INVALID_OPTION",
    /match takes an object of options, but was given a RegExp. Write match: \{ method: "POST", path: "\/posts" \}/,
  ],
  ["a map in place of options", new Map([["limit", 1]]), "FLOODGATE_INVALID_OPTION", /but was given a Map/],
  ["null in place of a key", { limit: 1, window: "1m", key: null }, "FLOODGATE_UNKNOWN_KEY", /but was null/],
  ["null in place of a cost", { limit: 1, window: "1m", cost: null }, "FLOODGATE_INVALID_COST", /but was null/],
  ["null in place of a name", { limit: 1, window: "1m", name: null }, "FLOODGATE_INVALID_OPTION", /`name` must be/],
  ["null in place of a word", { limit: 1, window: "1m", onMissingKey: null }, "FLOODGATE_INVALID_OPTION", /must be one of .* but was null/],
  ["a path without its slash", { rules: [{ ...rule, match: { path: "posts" } }] }, "FLOODGATE_INVALID_OPTION", /begins with "\/"/],
])("%s is refused when the limit is made, with what to write", (_, options, code, message) => {
  expect(() => rateLimit(options as never)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
});

test("an uncalled policy of a limiter is refused", () => {
  expect(() => createLimiter({ name: "api", policy: gcra as never, store: memoryStore() })).toThrow(
    /createLimiter: `policy` is gcra itself.*policy: gcra\(/,
  );
});

test("a cost that some plan allows is accepted, and so is any cost of a limit of 0", () => {
  const plans = { pro: { limit: 20 }, small: { limit: 1 } };
  expect(() => rateLimit({ limit: 5, window: "1m", cost: 20, plan: () => "pro", plans })).not.toThrow();
  expect(() => rateLimit({ limit: 0, window: "1m", cost: 20, onEvent: () => undefined })).not.toThrow();
});

test("one name on one store is one count: the same policy shares it, another policy is refused", () => {
  const store = memoryStore();
  createLimiter({ name: "api", policy, store });
  expect(() => createLimiter({ name: "api", policy: fixedWindow({ limit: 5, window: "1m" }), store })).not.toThrow();
  expect(() => rateLimit({ name: "api", policy: gcra({ limit: 5, window: "1m" }), store })).toThrow(
    expect.objectContaining({
      code: "FLOODGATE_NAME_TAKEN",
      message: expect.stringMatching(/the name "api" already stands for another policy/),
    }),
  );
});

test.each([0, -1, 1.5, Number.NaN, "1"])("a limiter rejects the cost %o", (cost) => {
  const limiter = createLimiter({ name: "api", policy, store: memoryStore() });
  expect(() => limiter.consume("k", { cost: cost as number })).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_COST" }));
  expect(limiter.peek("k").remaining).toBe(5);
});
