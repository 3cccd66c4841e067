import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { duplicateName } from "../../src/api/body.js";
import { few, startServe } from "../world.js";
import { apiClient, type Post } from "./client.js";

let post: Post;
let api: string;
const ends: (() => void | Promise<void>)[] = [];

beforeAll(async () => {
  const rules = [few(2), { name: "pair", limit: 2, window: "365d", key: ["ip", "header:x-user"] }];
  ({ api } = await startServe(rules, { presets: [], apiListen: "127.0.0.1:0" }, (task) => ends.unshift(task)));
  post = await apiClient(api);
});

afterAll(async () => {
  for (const end of ends) await end();
});

const ann = { rule: "few", key: "ann" };

describe("A body is refused", () => {
  it.each<[string, unknown, string]>([
    ["that is no JSON", '{"rule":', "no valid JSON"],
    ["that is empty", "", "no valid JSON"],
    ["that is not UTF-8", Buffer.from([...Buffer.from('{"rule":"few","key":"'), 0xff, ...Buffer.from('"}')]), "not UTF-8"],
    ["that is a text", '"few"', "The body must be an object"],
    ["that is null", "null", "The body must be an object"],
    ["that is a list", "[]", "The body must be an object"],
    ["without a key", { rule: "few" }, "`key` is missing"],
    ["with an unknown field", { ...ann, cots: 3 }, 'unknown field "cots"'],
    ["with __proto__", '{"rule":"few","key":"ann","__proto__":{"cost":1}}', 'unknown field "__proto__"'],
    ["with constructor", '{"rule":"few","key":"ann","constructor":1}', 'unknown field "constructor"'],
    ["with one name twice", '{"rule":"few","key":"ann","key":"bob"}', 'the name "key" twice'],
    ["with one name twice, once escaped", '{"rule":"few","key":"ann","k\\u0065y":"bob"}', 'the name "key" twice'],
    ["with one name twice and much space", `{"rule":"few","key":"ann","key"${" ".repeat(200)}:"bob"}`, 'the name "key" twice'],
    ["with two forms", { ...ann, checks: [ann] }, 'unknown field "rule"'],
    ["with no checks", { checks: [] }, "a list of 1 to 16 checks"],
    ["with too many checks", { checks: Array.from({ length: 17 }, (_, i) => ({ ...ann, key: i })) }, "a list of 1 to 16 checks"],
    ["with a wrong check", { checks: [ann, { ...ann, cost: "3" }] }, '`checks[1].cost` must be a whole number of at least 1, but was "3"'],
    ["with one check twice", { checks: [ann, ann] }, "twice with the same key"],
    [
      "with a cost of 2^53",
      { ...ann, cost: 2 ** 53 },
      "`cost` must be a whole number of at least 1 and below 2^53, but was 9007199254740992",
    ],
    ["with a cost of 0", { ...ann, cost: 0 }, "`cost` must be a whole number of at least 1, but was 0"],
    ["with a negative cost", { ...ann, cost: -1 }, "but was -1"],
    ["with a fraction", { ...ann, cost: 0.5 }, "but was 0.5"],
    ["with a huge cost", '{"rule":"few","key":"ann","cost":1e400}', "`cost` must be"],
    ["with a cost above 2^53", '{"rule":"few","key":"ann","cost":9007199254740993}', "`cost` must be"],
    ["with a key above 2^53", '{"rule":"few","key":9007199254740993}', "write larger ones as texts"],
    ["with an empty key", { rule: "few", key: "" }, "`key` must be"],
    ["with a long key", { rule: "few", key: "x".repeat(1025) }, "`key` must be a text of 1 to 1024 characters"],
    ["with a lone surrogate", '{"rule":"few","key":"\\ud800"}', "`key` must be"],
    ["with a null key", { rule: "few", key: null }, "`key` must be"],
    ["with an object as key", { rule: "few", key: { a: 1 } }, "`key` must be"],
    ["with a deep key", { rule: "few", key: [[["a"]]] }, "`key` must be"],
    ["with a long list as key", { rule: "few", key: Array(9).fill("a") }, "`key` must be"],
    ["with a key of the wrong kind of rule", { rule: "few", key: [] }, "`key` must be"],
    ["with another status", { ...ann, status: 503 }, "`status` must be 429"],
    ["with a wrong method", { request: { method: "GE T", path: "/" } }, "`request.method` must be an HTTP method"],
    ["with a space in the path", { request: { method: "GET", path: "/ HTTP/1.1" } }, "`request.path` must be"],
    ["with a NUL in the path", { request: { method: "GET", path: "/\0" } }, "`request.path` must be"],
    ["with a wrong address", { request: { method: "GET", path: "/", ip: "1.2.3" } }, "`request.ip` must be an IP address"],
    ["with a header twice", { request: { method: "GET", path: "/", headers: { A: "1", a: "2" } } }, "more than upper and lower case"],
    ["with a wrong header name", { request: { method: "GET", path: "/", headers: { "a b": "1" } } }, "`request.headers"],
    ["nested in 5,000 objects", `${'{"request":'.repeat(5000)}1${"}".repeat(5000)}`, "in more than 64 levels"],
    ["nested in 60,000 lists", `${"[".repeat(60_000)}${"]".repeat(60_000)}`, "in more than 64 levels"],
  ])("%s", async (_, body, detail) => {
    const answer = await post("/v1/check", body);
    expect(answer).toMatchObject({ status: 400, body: { code: expect.any(String), detail: expect.stringContaining(detail) } });
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });

  it("and nothing was counted for any of them", async () => {
    expect((await post("/v1/status", ann)).body).toMatchObject({ remaining: 2 });
  });

  it("if it is too large, with or without a length", async () => {
    expect(await post("/v1/check", `"${"x".repeat(1_000_000)}"`)).toMatchObject({ status: 413, body: { code: "body-too-large" } });
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", "application/jsonp", ""])(
    "if its type is %j",
    async (type) => {
      expect(await post("/v1/check", ann, { "Content-Type": type })).toMatchObject({ status: 415 });
    },
  );

  it.each<[string, unknown]>([
    ["/v1/settle", { receipt: "fb1.x", cost: -1 }],
    ["/v1/settle", { receipt: "fb1.!", cost: 1 }],
    ["/v1/settle", { receipt: "fb1.e30", cost: 1 }],
    ["/v1/refund", { receipt: "fb1.e30", cost: 1 }],
    ["/v1/refund", {}],
    ["/v1/renew", {}],
    ["/v1/status", { rule: "few", key: ["ann", {}] }],
    ["/v1/status", { rule: "pair", key: "ann", more: 1 }],
    ["/v1/reset", { rule: "few" }],
    ["/v1/reset", { rule: "few", key: { missingKeyIp: "nowhere" } }],
    ["/v1/block", { rule: "few", key: "ann" }],
    ["/v1/block", { rule: "few", key: "ann", for: 3600 }],
    ["/v1/block", { rule: "few", key: "ann", for: "1 hour" }],
    ["/v1/block", { rule: "few", key: "ann", for: "0s" }],
    ["/v1/block", { rule: "few", key: "ann", for: "999999999999999d" }],
    ["/v1/unblock", { rule: "few", key: "ann", for: "1h" }],
  ])("of %s: %j", async (path, body) => {
    expect((await post(path, body)).status).toBe(400);
  });
});

it("Unknown rules are not found, also those with names that objects inherit", async () => {
  for (const rule of ["fwe", "constructor", "__proto__", "toString", "few\0"]) {
    for (const path of ["check", "status", "reset", "unblock"]) {
      expect(await post(`/v1/${path}`, { rule, key: "ann" })).toMatchObject({ status: 404, body: { code: "FLOODGATE_UNKNOWN_RULE" } });
    }
  }
});

it("Unknown addresses and methods are refused", async () => {
  expect((await post("/v1/checks", ann)).status).toBe(404);
  expect((await fetch(`${api}/`)).status).toBe(404);
  const get = await fetch(`${api}/v1/check`);
  expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"]);
});

it("Keys that differ in any character are different keys", async () => {
  const keys = [
    "a",
    "A",
    "a\0",
    "ä",
    "a\u0308",
    "(a,b)",
    ["a", "b"],
    "a,b",
    "true",
    "secret:a",
    "missing-key-ip:1.2.3.4",
    "\\a",
    "7",
    "7.0",
  ];
  for (const key of keys) {
    expect((await post("/v1/check", { rule: "few", key })).body).toMatchObject({ decisions: [{ remaining: 1 }] });
  }
  expect((await post("/v1/check", { rule: "few", key: 7 })).body).toMatchObject({ decisions: [{ remaining: 0 }] });
});

it.each([
  ['{"a":{"a":1},"b":["a","a",{"a":"a"}]}', undefined],
  ['{"a":"b","b":"a"}', undefined],
  ['{"a":"{\\"b\\":1,\\"b\\":2}"}', undefined],
  ['[{"a":1},{"a":2}]', undefined],
  ['[[{"a":[{}],"b":1,"a" :2}]]', "a"],
  ['{"a":1,"\\u0061":2}', "a"],
])("duplicateName(%s) is %s", (text, name) => {
  expect(duplicateName(text)).toBe(name);
});
