import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { duration, latency, percent, rate, visible } from "@floodgate/pages/format";
import { describe, expect, it } from "vitest";
import { type History, wholeRequests } from "../../src/contract.js";
import { countsOf } from "../../src/page/counts.js";
import { keyOf, queryOf } from "../../src/page/typed.js";

// What the page works out without a browser.

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

it.each([
  [0, "0 %"],
  [0.0004, "<0.1 %"],
  [0.0123, "1.2 %"],
  [0.994, "99 %"],
  [0.9989, "99 %"],
  [0.9996, ">99.9 %"],
  [1, "100 %"],
])("writes the share %d as %s: 0 and 100 only if it is that", (share, text) => {
  expect(plain(percent(share))).toBe(text);
});

it.each([
  [0, "0"],
  [0.004, "<0.01"],
  [0.25, "0.25"],
  [3, "3"],
  [3.14, "3.1"],
  [123.4, "123"],
  [123_456, "123K"],
])("writes %d per second as %s", (perSecond, text) => {
  expect(rate(perSecond)).toBe(text);
});

it("writes durations in their two largest units", () => {
  expect([250, 1500, 59_000, 3_600_000, 5_445_000, 93_600_000, Number.POSITIVE_INFINITY].map((ms) => plain(duration(ms)))).toEqual([
    "250 ms",
    "1.5 s",
    "59 s",
    "1 h",
    "1 h 30 min",
    "1 d 2 h",
    "forever",
  ]);
  expect([0.0004, 0.42, 2.34, 42.4, 2500].map((ms) => plain(latency(ms)))).toEqual(["1 µs", "420 µs", "2.3 ms", "42 ms", "2.5 s"]);
});

it("shows what cannot be seen, and cuts what is very long", () => {
  expect(visible("a\u202Eb\u0000c\u200Bd\ud800")).toBe("a⟨202E⟩b⟨0000⟩c⟨200B⟩d⟨D800⟩");
  expect(visible("x".repeat(1000))).toBe(`${"x".repeat(300)}… (1,000 characters)`);
  expect(visible("Ünïcode 👍 שלום")).toBe("Ünïcode 👍 שלום");
});

it("reads a list of parts as a key of several parts, and all else as a key", () => {
  expect(keyOf(" 203.0.113.7 ")).toEqual({ key: "203.0.113.7" });
  expect(keyOf('["203.0.113.7", "ada"]')).toEqual({ key: ["203.0.113.7", "ada"] });
  expect(keyOf("[unclosed")).toEqual({ key: "[unclosed" });
  expect(keyOf("[]")).toEqual({ key: "[]" });
});

it("reads headers and keys line by line, and leaves out what is empty", () => {
  const typed = { method: "POST", path: " /posts ", ip: "", plan: "", headers: "X-Key: a:b\n\nbroken", keys: "user=4=2" };
  expect(queryOf(typed)).toEqual({ method: "POST", path: "/posts", headers: { "X-Key": "a:b" }, keys: { user: "4=2" } });
});

describe("a minute's history", () => {
  const minute: History = {
    range: "minute",
    startMs: 60_000,
    stepMs: 1000,
    points: 3,
    bursts: [],
    rules: [
      { rule: "a", series: { allowed: [1, 2, 3] } },
      { rule: "b", series: { limited: [5, 0, 0] } },
      { rule: wholeRequests, series: { allowed: [1, 2, 0], limited: [5, 0, 0] } },
    ],
  };

  it("adds up one rule, or whole requests", () => {
    expect(countsOf(minute)).toEqual({ allowed: 3, limited: 5 });
    expect(countsOf(minute, "a")).toEqual({ allowed: 6 });
    expect(countsOf(minute, "__proto__")).toEqual({});
  });
});

it("advises what to write in an app and for a gateway, because floodgate serve and floodgate gateway serve the page too", () => {
  const folder = join(__dirname, "../../src/page");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
  const texts = files
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .filter((text) => /your app\b|app\.use\(|rateLimit\(/.test(text));
  expect(texts).toHaveLength(1);
  for (const text of texts) expect(text).toMatch(/In an app, .*For floodgate serve and floodgate gateway, /s);
});
