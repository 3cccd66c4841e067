import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { Step } from "./adapter.js";
import type { AdapterSuite } from "./web.js";
import { items } from "./world.js";

/** Limits in sub-routers and sub-apps. */
export function mountedCases({ adapter, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 5, window: "1m" });

  for (const [kind, app] of [
    ["a sub-router", false],
    ["a sub-app", true],
  ] as const) {
    const mounted = (router: string, ...steps: Step[]): Step => ({ router, steps, app });

    it(`${kind} matches rules by the full path`, async (web) => {
      const rules = [
        { name: "full", policy, match: { path: "/v1/items/:id" } },
        { name: "inner", policy, match: { path: "/items/:id" } },
      ];
      const app = await web.start({ limits: [{ rules }], steps: [mounted("/v1", { limit: 0 }, { route: "/items/:id" })] });
      // The first request may count under too many rules: adapters may learn the mount paths from it.
      assert.ok("full" in items(await app.get("/v1/items/6"), "ratelimit"));
      assert.deepEqual(Object.keys(items(await app.get("/v1/items/7"), "ratelimit")), ["full"]);
    });

    it(`${kind} charges a middleware once that is also mounted around it, in an inner router, and twice in a row`, async (web) => {
      const steps = [
        { limit: 0 },
        { limit: 0 },
        mounted("/v1", { limit: 0 }, { router: "/items", steps: [{ limit: 0 }, { route: "/:id", limits: [0, 0] }] }),
      ];
      const app = await web.start({ limits: [{ policy }], steps });
      const response = await app.get("/v1/items/7");
      assert.deepEqual(items(response, "ratelimit"), { default: { r: 4, t: 45 } });
      assert.equal(response.body.decision.remaining, 4);
    });

    it(`${kind} adds its list items to those of the outer app, allowed and limited`, async (web) => {
      const inner = { name: "inner", policy: fixedWindow({ limit: 1, window: "1m" }) };
      const app = await web.start({
        limits: [{ name: "outer", policy }, inner],
        steps: [{ limit: 0 }, mounted("/v1", { limit: 1 }, { route: "/items" })],
      });
      for (const status of [200, 429]) {
        const response = await app.get("/v1/items");
        assert.equal(response.status, status);
        assert.deepEqual(Object.keys(items(response, "ratelimit")), ["outer", "inner"]);
      }
    });

    it(`${kind} passes errors of key functions to the outer app's error handler`, async (web) => {
      const fault = new Error("key");
      const key = async (): Promise<never> => {
        throw fault;
      };
      const app = await web.start({ limits: [{ policy, key }], steps: [mounted("/v1", { limit: 0 }, { route: "/items" })] });
      assert.equal((await app.get("/v1/items")).status, 500);
      assert.deepEqual(app.errors, [fault]);
    });

    if (!adapter.proxies.includes("one hop")) continue;
    it(`${kind} follows the outer app's proxy setting`, async (web) => {
      const app = await web.start({
        limits: [{ policy: fixedWindow({ limit: 1, window: "1m" }) }],
        steps: [mounted("/v1", { limit: 0 }, { route: "/items" })],
        proxy: "one hop",
      });
      for (const [ip, status] of [
        ["192.0.2.1", 200],
        ["192.0.2.1", 429],
        ["192.0.2.2", 200],
      ] as const) {
        assert.equal((await app.get("/v1/items", { "x-forwarded-for": `6.6.6.6, ${ip}` })).status, status);
      }
    });
  }
}
