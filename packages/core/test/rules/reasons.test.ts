import { expect, it } from "vitest";
import { wordsOf } from "../../src/rules/reasons.js";
import type { PlainRule } from "../../src/rules.js";

const base = { name: "api", limit: 10, window: "1m" } as const;

it.each<[string, Partial<PlainRule>]>([
  ["all requests", {}],
  ["all requests", { match: {} }],
  ["POST /posts", { match: { method: "POST", path: "/posts" } }],
  ["GET or PUT /a or /b", { match: { method: ["GET", "PUT"], path: ["/a", "/b"] } }],
  ["with x-beta", { match: { header: { "x-beta": true } } }],
  ["/a without x-beta", { match: { path: "/a", header: { "x-beta": false } } }],
  ["with x-plan: free or trial", { match: { header: { "x-plan": ["free", "trial"] } } }],
])("a rule counts %s", (match, rule) => {
  expect(wordsOf({ ...base, ...rule }).match).toBe(match);
});

it.each([
  ["ip", undefined],
  ["user", "user"],
  ["ip, user", ["ip", "user"]],
  ["a function", () => "k"],
])("a rule counts by %s", (words, key) => {
  expect(wordsOf({ ...base, ...(key !== undefined && { key }) } as never).key).toBe(words);
});

it("a ban's durations are shown with units, however they were given", () => {
  expect(wordsOf({ ...base, ban: { after: 5, within: 60_000, for: 5_400_000 } }).ban).toBe("1h 30m after 5 rejections within 1m");
  expect(wordsOf({ ...base, ban: { after: 5, within: "60s", for: "1h" } }).ban).toBe("1h after 5 rejections within 1m");
  expect(wordsOf(base).ban).toBeUndefined();
});
