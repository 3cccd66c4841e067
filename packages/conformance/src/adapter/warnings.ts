import assert from "node:assert/strict";
import type { FloodgateEvent } from "@floodgate/core";
import type { AdapterSuite } from "./web.js";

/** Warnings about mistakes that only traffic shows. */
export function warningCases({ describe, it }: AdapterSuite): void {
  const codes = (events: readonly FloodgateEvent[]): string[] => events.flatMap((event) => (event.type === "warning" ? [event.code] : []));

  describe("a limit that is made for each request", () => {
    it("limits nothing, and warns once", async (web) => {
      const { onEvent } = web.listen("warning");
      const app = await web.start({ limits: [{ limit: 1, window: "1m", onEvent }], anew: true });
      assert.deepEqual(new Set(await app.statuses(9)), new Set([200]));
      assert.deepEqual(codes(web.events), []);
      await app.statuses(21);
      assert.deepEqual(codes(web.events), ["FLOODGATE_MADE_PER_REQUEST"]);
      const [warning] = web.events.filter((event) => event.type === "warning");
      assert.match(warning?.type === "warning" ? warning.message : "", /Call it once, when the app is set up/);
    });

    it("counts and causes no warning if the store is shared", async (web) => {
      const { onEvent } = web.listen("warning");
      const limits = [{ name: "shared", limit: 5, window: "1m", store: web.store, onEvent } as const];
      const app = await web.start({ limits, anew: true });
      assert.deepEqual(await app.statuses(30), [...Array(5).fill(200), ...Array(25).fill(429)]);
      assert.deepEqual(codes(web.events), []);
    });

    it("causes no warning if each of many apps makes its limit once", async (web) => {
      const { onEvent } = web.listen("warning");
      for (let i = 0; i < 30; i++) {
        const app = await web.start({ limits: [{ limit: 100, window: "1m", onEvent }], ownStores: true });
        await app.statuses(i === 0 ? 30 : 1);
      }
      assert.deepEqual(codes(web.events), []);
    });
  });
}
