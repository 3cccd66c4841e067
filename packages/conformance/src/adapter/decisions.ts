import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { Handler, LimitSetup } from "./adapter.js";
import { type AdapterSuite, later } from "./web.js";

/** `decisionName`: where handlers find the decision. */
export function decisionCases({ describe, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 1, window: "1m" });
  const limit = (name: string, decisionName: string): LimitSetup => ({ name, policy, decisionName });

  /** Whose decision the handler finds under each name. */
  const found: Handler = (request, decision) => ({
    body: { rateLimit: decision?.name, ...Object.fromEntries(["quota", "burst"].map((name) => [name, request.decision(name)?.name])) },
  });

  describe("decisionName", () => {
    it("is what the decision is called in place of rateLimit", async (web) => {
      const app = await web.start({ limits: [limit("api", "quota")], handler: found });
      assert.deepEqual((await app.get()).body, { quota: "api" });
    });

    it("is rateLimit unless said, and may be said", async (web) => {
      const app = await web.start({ limits: [limit("api", "rateLimit")], handler: found });
      assert.deepEqual((await app.get()).body, { rateLimit: "api" });
    });

    it("tells the decisions of several middlewares apart, in any order", async (web) => {
      for (const order of [
        ["rateLimit", "quota", "burst"],
        ["burst", "quota", "rateLimit"],
      ]) {
        const app = await web.start({ limits: order.map((name) => limit(`of ${name}`, name)), handler: found });
        assert.deepEqual((await app.get()).body, { rateLimit: "of rateLimit", quota: "of quota", burst: "of burst" });
        web.nowMs += 60_000;
      }
    });

    it("of several of one name is the one met last that applied", async (web) => {
      const limits = [limit("first", "quota"), limit("second", "quota"), { ...limit("third", "quota"), skip: () => true }];
      const app = await web.start({ limits, handler: found });
      assert.deepEqual((await app.get()).body, { quota: "second" });
    });

    it("holds what the first meeting decided where a request meets a middleware twice", async (web) => {
      const app = await web.start({
        limits: [limit("api", "quota")],
        steps: [{ limit: 0 }, { limit: 0 }, { router: "/api", steps: [{ route: "/", limits: [0] }] }],
        handler: found,
      });
      assert.deepEqual((await app.get("/api")).body, { quota: "api" });
    });

    it("holds a decision that was waited for, and is there for onLimited", async (web) => {
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

    it("has nothing where no limit applied", async (web) => {
      const app = await web.start({ limits: [{ ...limit("api", "quota"), cost: 0 }], handler: found });
      assert.deepEqual((await app.get()).body, {});
    });

    for (const name of ["", "rate-limit", "a b", "1st", "__proto__", null, 1]) {
      it(`${JSON.stringify(name)} names no property, and is refused`, async (web) => {
        await assert.rejects(web.start({ policy, decisionName: name as never }), { code: "FLOODGATE_INVALID_OPTION" });
      });
    }
  });
}
