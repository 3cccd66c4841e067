import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { AdapterSuite } from "./web.js";
import { items } from "./world.js";

/** Several limits on one request, in one middleware or in several. */
export function severalCases({ it }: AdapterSuite): void {
  const wide = { name: "wide", policy: fixedWindow({ limit: 5, window: "1h" }) };
  const tight = { name: "tight", policy: fixedWindow({ limit: 1, window: "1m" }) };

  it("add their list items to the headers and overwrite none", async (web) => {
    const app = await web.start({ limits: [wide, tight] });
    const response = await app.get();
    assert.deepEqual(items(response, "ratelimit-policy"), { wide: { q: 5, w: 3600 }, tight: { q: 1, w: 60 } });
    assert.deepEqual(items(response, "ratelimit"), { wide: { r: 4, t: 3585 }, tight: { r: 0, t: 45 } });
    const limited = await app.get();
    assert.equal(limited.status, 429);
    assert.deepEqual(Object.keys(items(limited, "ratelimit")), ["wide", "tight"]);
    assert.equal(limited.headers["retry-after"], "45");
    assert.deepEqual(limited.body["violated-policies"], ["tight"]);
  });

  it("send headers of one decision once, of the more restrictive limit, whichever is first", async (web) => {
    for (const limits of [
      [wide, tight],
      [tight, wide],
    ]) {
      const app = await web.start({ limits: limits.map((limit) => ({ ...limit, headers: ["draft-6", "legacy"] as const })) });
      const { lines } = await app.get();
      assert.deepEqual([lines("ratelimit-limit"), lines("x-ratelimit-limit")], [["1"], ["1"]]);
      web.nowMs += 60_000;
    }
  });

  it("the handler finds the decision of the last middleware", async (web) => {
    const app = await web.start({ limits: [tight, wide] });
    assert.equal((await app.get()).body.decision.name, "wide");
  });

  it("each limits where it is mounted: all requests, a path, a sub-router, a route", async (web) => {
    const named = (name: string) => ({ name, policy: wide.policy });
    const app = await web.start({
      limits: [named("app"), named("path"), named("router"), named("route")],
      steps: [
        { limit: 0 },
        { limit: 1, path: "/api" },
        { router: "/api", steps: [{ limit: 2 }, { route: "/users/:id", limits: [3] }, { route: "/other" }] },
        { route: "/" },
      ],
    });
    const met = async (path: string): Promise<string[]> => Object.keys(items(await app.get(path), "ratelimit"));
    assert.deepEqual(await met("/"), ["app"]);
    assert.deepEqual(await met("/api/other"), ["app", "path", "router"]);
    assert.deepEqual(await met("/api/users/1"), ["app", "path", "router", "route"]);
  });

  it("a middleware on two routes keeps one count", async (web) => {
    const app = await web.start({
      limits: [{ ...wide, policy: fixedWindow({ limit: 2, window: "1m" }) }],
      steps: [
        { route: "/a", limits: [0] },
        { route: "/b", limits: [0] },
      ],
    });
    assert.deepEqual(
      [...(await app.statuses(1, "/a")), ...(await app.statuses(1, "/b")), ...(await app.statuses(1, "/a"))],
      [200, 200, 429],
    );
  });
}
