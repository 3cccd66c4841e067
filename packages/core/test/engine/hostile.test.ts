import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, it, type RequestView } from "./app.js";

/** Strings that trip careless programs, in JSON notation. */
const hostileStrings: readonly string[] = [
  ...[
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "",
    " ",
    "\\u0000",
    "\\u0000a",
    "\\u00001\\u0000a",
    "\\ud800",
    "\\udfff",
    "\\ud800\\ud800",
  ],
  ...[
    "\\ufffd",
    "\\uD83D\\uDE00",
    "(a)",
    "(a,b)",
    "a,b",
    "\\\\(a)",
    "a\\nb",
    "a:b",
    "*",
    "user:*",
    "%00",
    "é",
    "e\\u0301",
    "null",
    "undefined",
    "NaN",
    "0",
    "-0",
  ],
];

/** Hostile requests neither crash the app nor share a count. */
const policy = fixedWindow({ limit: 1, window: "1m" });
const user = (request: RequestView): string => (request.body as { user: string }).user;

describe("hostile requests", () => {
  it("different keys from a JSON body never share a count", async (web) => {
    const app = await web.start({ policy, key: user });
    for (const text of hostileStrings) assert.equal((await app.post("/", `{"user":"${text}"}`)).status, 200, text);
    for (const text of hostileStrings) assert.equal((await app.post("/", `{"user":"${text}"}`)).status, 429, text);
  });

  it("different tuples from a JSON body never share a count", async (web) => {
    const app = await web.start({ policy, key: (request) => (request.body as { key: string[] }).key });
    const tuples = [
      '["a","b"]',
      '["a,b"]',
      '["a\\\\","b"]',
      '["a\\\\,b"]',
      '["","a,b"]',
      '["a","","b"]',
      '["(a,b)"]',
      '["__proto__"]',
      '["\\ud800",""]',
      '["",""]',
      '[""]',
    ];
    for (const text of tuples) assert.equal((await app.post("/", `{"key":${text}}`)).status, 200, text);
    for (const text of tuples) assert.equal((await app.post("/", `{"key":${text}}`)).status, 429, text);
  });

  it("__proto__ in a body changes no option and no decision", async (web) => {
    const app = await web.start({ policy, key: user });
    const body = '{"__proto__":{"limit":1e9,"allowed":true,"skip":true},"user":"ann"}';
    assert.equal((await app.post("/", body)).status, 200);
    assert.equal((await app.post("/", body)).status, 429);
    assert.equal(({} as { allowed?: unknown }).allowed, undefined);
  });

  it("a 12 kB header works as a key", async (web) => {
    const app = await web.start({ policy, key: "header:x-api-key" });
    const long = "a".repeat(12_000);
    for (const [key, status] of [
      [`${long}1`, 200],
      [`${long}1`, 429],
      [`${long}2`, 200],
    ] as const) {
      assert.equal((await app.raw("/", { "x-api-key": key })).status, status);
    }
  });

  const hops = (count: number, address: (i: number) => string): string => Array.from({ length: count }, (_, i) => address(i)).join(",");
  const lists: [string, string][] = [
    ["a thousand hops", hops(1000, (i) => `10.0.${i >> 8}.${i & 255}`)],
    ["a 15 kB header of commas", ",".repeat(15_000)],
    ["a 15 kB header of digits", "1".repeat(15_000)],
    ["a 15 kB header of colons", ":".repeat(15_000)],
    ["a 15 kB header of spaces", `1.1.1.1${" ".repeat(15_000)},`],
    ["names of object members", hops(100, () => "__proto__")],
  ];
  for (const [kind, list] of lists) {
    it(`${kind} in X-Forwarded-For does not evade a limit`, async (web) => {
      const app = await web.start({ policy, onEvent: () => undefined });
      assert.equal((await app.raw("/", { "x-forwarded-for": list })).status, 200);
      assert.equal((await app.raw("/", { "x-forwarded-for": `${list}x` })).status, 429);
      assert.equal((await app.get()).status, 429);
    });

    it(`${kind} in X-Forwarded-For before the proxy's entry is ignored`, async (web) => {
      const app = await web.start({ policy, clientIp: { trustedProxies: ["loopback", "10.0.0.0/8"] } });
      const header = (ip: string) => ({ "x-forwarded-for": `${list}, ${ip}` });
      assert.equal((await app.raw("/", header("203.0.113.1"))).status, 200);
      assert.equal((await app.raw("/", header("203.0.113.1"))).status, 429);
      assert.equal((await app.raw("/", header("203.0.113.2"))).status, 200);
      assert.equal((await app.peek()).remaining, 1);
    });
  }

  it("a path of thousands of segments gets a response, whether it matches or not", async (web) => {
    const app = await web.start({ rules: [{ name: "rule", policy, match: { path: "/a/*/b/*/c/*/d" } }] });
    const path = `/a${"/b/c".repeat(3000)}`;
    assert.equal((await app.raw(path)).lines("ratelimit").length, 0);
    assert.equal((await app.raw(`${path}/d`)).lines("ratelimit").length, 1);
  });
});
