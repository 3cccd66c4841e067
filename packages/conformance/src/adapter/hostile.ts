import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { RequestView } from "./adapter.js";
import type { AdapterSuite } from "./web.js";

/** Strings that trip careless programs, in JSON notation. */
export const hostileStrings: readonly string[] = [
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
export function hostileCases({ adapter, describe, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 1, window: "1m" });
  const user = (request: RequestView): string => (request.body as { user: string }).user;

  describe("hostile requests", () => {
    it("different keys from a JSON body never share a count", async (web) => {
      const app = await web.start({ policy, key: user });
      for (const text of hostileStrings) assert.equal((await app.post("/", `{"user":"${text}"}`)).status, 200, text);
      for (const text of hostileStrings) assert.equal((await app.post("/", `{"user":"${text}"}`)).status, 429, text);
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
      if (!adapter.proxies.includes("one hop")) continue;
      it(`${kind} in X-Forwarded-For before the proxy's entry is ignored with the framework's proxy setting too`, async (web) => {
        const app = await web.start({ limits: [{ policy }], proxy: "one hop" });
        const header = (ip: string) => ({ "x-forwarded-for": `${list}, ${ip}` });
        assert.equal((await app.raw("/", header("203.0.113.1"))).status, 200);
        assert.equal((await app.raw("/", header("203.0.113.1"))).status, 429);
        assert.equal((await app.raw("/", header("203.0.113.2"))).status, 200);
      });
    }
  });
}
