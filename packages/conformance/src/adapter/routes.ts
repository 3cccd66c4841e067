import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import type { AdapterSuite } from "./web.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

/** The key `"route"` is the matched pattern: `/users/1` and `/users/2` share one count. */
export function routeCases({ adapter, it }: AdapterSuite): void {
  const patterns: [string, LimitSetup][] = [
    ["the matched pattern, never a URL", { policy, key: "route" }],
    ["the framework's pattern if the rule's path has a *", { rules: [{ name: "all", policy, key: "route", match: { path: "/*" } }] }],
  ];
  for (const [what, limit] of patterns) {
    it(`the key route is ${what}`, async (web) => {
      const steps = ["/users/:id", "/posts/:id"].map((route) => ({ route, limits: [0] }));
      const app = await web.start({ limits: [limit], steps });
      assert.deepEqual(await app.statuses(1, "/users/1"), [200]);
      assert.deepEqual(await app.statuses(1, "/users/2?x=3"), [429]);
      assert.deepEqual(await app.statuses(1, "/posts/1"), [200]);
    });
  }

  it("the key route is the rule's path on routes with the same pattern in two routers", async (web) => {
    const match = { path: ["/users/:id", "/posts/:id"] };
    const app = await web.start({
      limits: [{ rules: [{ name: "items", policy, key: "route", match }] }],
      steps: ["/users", "/posts"].map((router) => ({ router, steps: [{ route: "/:id", limits: [0] }] })),
    });
    assert.deepEqual(await app.statuses(1, "/users/1"), [200]);
    assert.deepEqual(await app.statuses(1, "/users/2"), [429]);
    assert.deepEqual(await app.statuses(1, "/posts/1"), [200]);
  });

  it("the key route before any route is the route that will match, or an error if the framework does not know it yet", async (web) => {
    const steps = [{ limit: 0 }, { route: "/users/:id" }, { route: "/posts/:id" }];
    const app = await web.start({ limits: [{ policy, key: "route" }], steps });
    const statuses = [];
    // Requests that no route serves share a count.
    for (const path of ["/users/1", "/users/2", "/posts/1", "/nowhere", "/elsewhere"]) statuses.push((await app.get(path)).status);
    assert.deepEqual(statuses, adapter.routesAhead === true ? [200, 429, 200, 404, 429] : Array(5).fill(500));
    assert.deepEqual(app.codes, adapter.routesAhead === true ? [] : Array(5).fill("FLOODGATE_NO_ROUTE"));
  });
}
