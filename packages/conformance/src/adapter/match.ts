import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { AdapterSuite, App } from "./web.js";

const policy = fixedWindow({ limit: 100, window: "1m" });

/** Request targets, some of which a router maps to `/posts`. */
const spellings = [
  ...["/posts", "/POSTS", "/posts/", "/posts//", "//posts", "/posts?x", "/posts?/y", "/posts#x", "/posts/#x", "/posts;a=b", "/posts%2F"],
  ...[
    "/p%6Fsts",
    "/%70osts",
    "/%2Fposts",
    "/./posts",
    "/posts/.",
    "/x/../posts",
    "/posts/..",
    "/posts%20",
    "/posts%00",
    "/posts\\",
    "/\\posts#",
  ],
  ...[
    "/x\\..\\posts#",
    "http://elsewhere.example/posts",
    "http://elsewhere.example/posts/?x",
    "HTTP://elsewhere.example:80/POSTS",
    "http://u:p@elsewhere.example/posts",
  ],
];

/** `match`: the requests that a rule applies to. */
export function matchCases({ describe, it }: AdapterSuite): void {
  const matched = async (app: App, path: string): Promise<boolean> => (await app.raw(path)).lines("ratelimit").length > 0;

  describe("match", () => {
    it("the full path, including mount paths", async (web) => {
      const rules = [
        { name: "full", policy, match: { path: "/api/posts/:id" } },
        { name: "inner", policy, match: { path: "/posts/:id" } },
      ];
      const app = await web.start({
        limits: [{ rules }],
        steps: [{ router: "/api", steps: [{ limit: 0 }, { route: "/posts/:id" }] }],
      });
      assert.deepEqual((await app.raw("/api/posts/1")).lines("ratelimit-policy"), ['"full";q=100;w=60']);
    });

    it("the full path on a route of a sub-router", async (web) => {
      const app = await web.start({
        limits: [{ rules: [{ name: "full", policy, match: { path: "/api/posts/:id" } }] }],
        steps: [{ router: "/api", steps: [{ route: "/posts/:id", limits: [0] }] }],
      });
      assert.equal(await matched(app, "/api/posts/1"), true);
    });

    for (const place of ["all requests", "a sub-router"]) {
      it(`every spelling of a target that reaches the route (mounted on ${place})`, async (web) => {
        const limits = [{ rules: [{ name: "rule", policy, match: { path: place === "all requests" ? "/posts" : "/api/posts" } }] }];
        const app = await web.start({
          limits,
          steps:
            place === "all requests"
              ? [{ limit: 0 }, { route: "/posts" }]
              : [{ router: "/api", steps: [{ limit: 0 }, { route: "/posts" }] }],
        });
        let reached = 0;
        for (const spelling of spellings) {
          const target = place === "all requests" ? spelling : spelling.replace(/^(https?:\/\/[^/]+)?/i, "$1/api");
          const response = await app.raw(target).catch(() => undefined);
          if (response?.status !== 200) continue;
          reached++;
          assert.equal(response.lines("ratelimit").length, 1, target);
        }
        assert.ok(reached >= 5, `${reached} spellings reached the route`);
      });
    }
  });
}
