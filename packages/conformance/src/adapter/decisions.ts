import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { Handler, LimitSetup } from "./adapter.js";
import type { AdapterSuite } from "./web.js";
import { later } from "./world.js";

/** `decisionName`: where handlers find the decision. */
export function decisionCases({ describe, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 1, window: "1m" });
  const limit = (name: string, decisionName: string): LimitSetup => ({ name, policy, decisionName });

  /** Responds with the name of the limit whose decision the handler finds under each name. */
  const found: Handler = (request, decision) => ({
    body: { rateLimit: decision?.name, ...Object.fromEntries(["quota", "burst"].map((name) => [name, request.decision(name)?.name])) },
  });

  describe("decisionName", () => {
    it("replaces rateLimit as the property that holds the decision", async (web) => {
      const app = await web.start({ limits: [limit("api", "quota")], handler: found });
      assert.deepEqual((await app.get()).body, { quota: "api" });
    });

    it("defaults to rateLimit, which may also be given", async (web) => {
      const app = await web.start({ limits: [limit("api", "rateLimit")], handler: found });
      assert.deepEqual((await app.get()).body, { rateLimit: "api" });
    });

    it("separates the decisions of several middlewares, in any order", async (web) => {
      for (const order of [
        ["rateLimit", "quota", "burst"],
        ["burst", "quota", "rateLimit"],
      ]) {
        const app = await web.start({ limits: order.map((name) => limit(`of ${name}`, name)), handler: found });
        assert.deepEqual((await app.get()).body, { rateLimit: "of rateLimit", quota: "of quota", burst: "of burst" });
        web.nowMs += 60_000;
      }
    });

    it("holds the last decision that applied when middlewares share a name", async (web) => {
      const limits = [limit("first", "quota"), limit("second", "quota"), { ...limit("third", "quota"), skip: () => true }];
      const app = await web.start({ limits, handler: found });
      assert.deepEqual((await app.get()).body, { quota: "second" });
    });

    it("keeps the first decision when a request passes a middleware twice", async (web) => {
      const app = await web.start({
        limits: [limit("api", "quota")],
        steps: [{ limit: 0 }, { limit: 0 }, { router: "/api", steps: [{ route: "/", limits: [0] }] }],
        handler: found,
      });
      assert.deepEqual((await app.get("/api")).body, { quota: "api" });
    });

    it("holds an asynchronous decision, also in onLimited", async (web) => {
      const app = await web.start({
        limits: [
          {
            ...limit("api", "quota"),
            store: later(web.store),
            onLimited: (request) => ({ body: { allowed: request.decision("quota")?.allowed } }),
          },
        ],
        handler: found,
      });
      assert.deepEqual((await app.get()).body, { quota: "api" });
      assert.deepEqual((await app.get()).body, { allowed: false });
    });

    it("is undefined if no limit applied", async (web) => {
      const app = await web.start({ limits: [{ ...limit("api", "quota"), cost: 0 }], handler: found });
      assert.deepEqual((await app.get()).body, {});
    });
  });
}
