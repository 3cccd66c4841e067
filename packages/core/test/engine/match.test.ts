import assert from "node:assert/strict";
import type { Match } from "../../src/adapter.js";
import { type FloodgateError, fixedWindow } from "../../src/index.js";
import { type App, describe, it, type RequestView } from "./app.js";

const policy = fixedWindow({ limit: 100, window: "1m" });

/** A rule's path, the paths that match, and the paths that do not. */
const paths: [Match["path"], string[], string[]][] = [
  ["/posts", ["/posts", "/POSTS", "/posts/", "/posts?x=/y", "/p%6Fsts", "/%50osts"], ["/", "/post", "/posts/1", "/api/posts", "/posts2"]],
  ["/Posts/", ["/posts", "/Posts/"], ["/post"]],
  ["/", ["/", "/?x"], ["/posts"]],
  ["/posts/:id", ["/posts/1", "/POSTS/x/", "/posts/a%2Fb", "/posts/%E2%82%AC", "/posts/%zz"], ["/posts", "/posts/", "/posts/1/2"]],
  ["/posts/:id/comments/:comment", ["/posts/1/comments/2"], ["/posts/1/comments", "/posts/1/likes/2"]],
  ["/files/*", ["/files/a", "/files/a/b/c", "/files/a%20b"], ["/file/a", "/x/files/a"]],
  [
    "/files/*",
    [
      ...["/files%2Fa", "/files%5Ca", "/./files/a", "/%2e/files/a", "/x/../files/a", "/x/%2E%2e/files/a", "/../files/a", "//files/a"],
      ...["/x%2F..%2Ffiles/a", "/x%2Fy/../files/a", "/files/./a", "/.%2Ffiles/a", "/files/%2e%2e/files/a"],
      ...["/files%252Fa", "/x/%252e%252e/files/a", "/%2566iles/a"],
    ],
    ["/%c0%ae/files/a", "/files%zz/a", "/files%00/a", "/x/.../files/a", "/x%2Ffiles/a"],
  ],
  ["/a/*/z", ["/a/b/z", "/a/b/c/z", "/a/z/z", "/A/b/Z/"], ["/a/b", "/a/b/z/y", "/b/z"]],
  [
    ["/a", "/b/:id"],
    ["/a", "/b/1"],
    ["/b", "/c"],
  ],
  ["/caf%C3%A9", ["/caf%C3%A9", "/CAF%c3%a9", "/caf%C3%89"], ["/cafe"]],
];

/** Paths that routers treat as patterns, and the character that makes them one. */
const patterns: [string, string][] = [
  ["/user-:id", ":"],
  ["/v:version/x", ":"],
  ["/items:batch", ":"],
  ["/:id.json", ":"],
  ["/:from-:to", ":"],
  ["/:id?", ":"],
  ["/:id(\\d+)", ":"],
  ["/:id{[0-9]+}", ":"],
  ["/:", ":"],
  ["/(a|b)", "("],
  ["/files?", "?"],
  ["/files?/x", "?"],
  ["/a+", "+"],
  ["/{x}", "{"],
  ["/x{/:id}", "{"],
  ["/[ab]", "["],
  ["/a\\b", "\\"],
  ["/*splat", "*"],
  ["/files/*.png", "*"],
];

/** `match`: the requests that a rule applies to. */
const matched = async (app: App, path: string): Promise<boolean> => (await app.raw(path)).lines("ratelimit").length > 0;

describe("match", () => {
  for (const [path, fit, others] of paths) {
    it(`path ${JSON.stringify(path)} includes ${fit.join(", ")}`, async (web) => {
      const app = await web.start({ rules: [{ name: "rule", policy, match: { path: path as string } }] });
      for (const one of fit) assert.equal(await matched(app, one), true, one);
    });
    it(`path ${JSON.stringify(path)} excludes ${others.join(", ")}`, async (web) => {
      const app = await web.start({ rules: [{ name: "rule", policy, match: { path: path as string } }] });
      for (const one of others) assert.equal(await matched(app, one), false, one);
    });
  }

  for (const [path, sign] of patterns) {
    it(`path ${path} is refused: routers treat ${sign} as a pattern, so it would never match`, async (web) => {
      for (const written of [path, ["/posts", path]]) {
        await assert.rejects(web.start({ rules: [{ name: "rule", policy, match: { path: written } }] }), (error: FloodgateError) => {
          assert.equal(error.code, "FLOODGATE_INVALID_OPTION");
          assert.match(error.message, /Write ":id" for a segment, .* several paths/);
          assert.ok(error.message.includes(`has a ${JSON.stringify(sign)}.`), error.message);
          return true;
        });
      }
    });
  }

  it("path characters match literally, and so do percent-encoded pattern characters", async (web) => {
    for (const [path, ...targets] of [
      ["/o'brien", "/o'brien", "/o%27brien"],
      ["/a-b.c~d_e", "/a-b.c~d_e"],
      ["/$pay!,now;x=1@home&co=", "/$pay!,now;x=1@home&co="],
      ["/at/12:", "/at/12:"],
      ["/%3Aid", "/:id", "/%3aid"],
      ["/user-%3aid", "/user-:id"],
      ["/c%2B%2B", "/c++", "/C%2b%2b"],
      ["/%2A", "/*"],
      ["/(a%7Cb)".replace("(", "%28").replace(")", "%29"), "/(a|b)", "/%28a%7Cb%29"],
      ["/files%3F", "/files%3F"],
    ]) {
      const app = await web.start({ rules: [{ name: `rule ${path}`, policy, match: { path: path as string } }] });
      for (const target of targets) assert.equal(await matched(app, target), true, `${path} ${target}`);
      assert.equal(await matched(app, "/other"), false, path);
    }
  });

  for (const [method, fit, others] of [
    ["GET", ["get", "head"], ["post", "options"]],
    ["post", ["post"], ["get", "head", "options"]],
    ["HEAD", ["head"], ["get", "post"]],
    [
      ["POST", "OPTIONS"],
      ["post", "options"],
      ["get", "head"],
    ],
  ] as const) {
    it(`method ${JSON.stringify(method)} includes ${fit.join(", ")} and excludes ${others.join(", ")}`, async (web) => {
      const app = await web.start({ rules: [{ name: "rule", policy, match: { method } }] });
      for (const one of [...fit, ...others]) {
        const { headers } = await app.send(one);
        assert.equal(headers["ratelimit"] !== undefined, (fit as readonly string[]).includes(one), one);
      }
    });
  }

  it("method and path must both match", async (web) => {
    const app = await web.start({ rules: [{ name: "rule", policy, match: { method: "POST", path: "/" } }] });
    assert.equal((await app.get("/")).headers["ratelimit"], undefined);
    assert.notEqual((await app.post("/", {})).headers["ratelimit"], undefined);
    assert.equal((await app.post("/x", {})).headers["ratelimit"], undefined);
  });

  it("header matches one value, several, any value or absence", async (web) => {
    const header = { "X-Version": ["2", "3*"], "x-beta": true, "x-old": false } as const;
    const app = await web.start({ rules: [{ name: "rule", policy, match: { header } }] });
    for (const [headers, expected] of [
      [{ "x-version": "2", "x-beta": "" }, true],
      [{ "x-version": "3.1", "x-beta": "yes" }, true],
      [{ "x-version": "2" }, false],
      [{ "x-version": "22", "x-beta": "1" }, false],
      [{ "x-version": "2", "x-beta": "1", "x-old": "1" }, false],
    ] as const) {
      assert.equal((await app.get("/", headers)).headers["ratelimit"] !== undefined, expected, JSON.stringify(headers));
    }
  });

  it("header names such as constructor or __proto__ work like any other", async (web) => {
    const rules = [
      { name: "constructor", policy, match: { header: { constructor: true } } },
      { name: "proto", policy, match: { header: JSON.parse('{ "__proto__": true }') } },
      { name: "key", policy, key: "header:constructor", onMissingKey: "skip" },
    ] as const;
    const app = await web.start({ rules });
    assert.equal((await app.get()).headers["ratelimit"], undefined);
    assert.equal((await app.get("/", { constructor: "a" })).headers["ratelimit"], '"constructor";r=99;t=45, "key";r=99;t=45');
  });

  for (const [kind, fits] of [
    ["at once", (request: RequestView) => request.header("x-limited") !== undefined],
    ["by promise", async (request: RequestView) => request.header("x-limited") !== undefined],
  ] as const) {
    it(`by a function of the request that answers ${kind}`, async (web) => {
      const app = await web.start({
        rules: [
          { name: "all", policy },
          { name: "rule", policy, match: fits },
        ],
      });
      assert.equal((await app.get()).headers["ratelimit"], '"all";r=99;t=45');
      assert.equal((await app.get("/", { "x-limited": "1" })).headers["ratelimit"], '"all";r=98;t=45, "rule";r=99;t=45');
    });
  }
});
