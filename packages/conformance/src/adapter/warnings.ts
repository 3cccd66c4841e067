import assert from "node:assert/strict";
import type { FloodgateEvent } from "@floodgate/core";
import type { AdapterSuite } from "./web.js";

/** Warnings about mistakes that only traffic shows. */
export function warningCases({ it }: AdapterSuite): void {
  const codes = (events: readonly FloodgateEvent[]): string[] => events.flatMap((event) => (event.type === "warning" ? [event.code] : []));

  it("a limit that is made for each request limits nothing, and warns once", async (web) => {
    const { onEvent } = web.listen("warning");
    const app = await web.start({ limits: [{ limit: 1, window: "1m", onEvent }], anew: true });
    assert.deepEqual(new Set(await app.statuses(9)), new Set([200]));
    assert.deepEqual(codes(web.events), []);
    await app.statuses(21);
    assert.deepEqual(codes(web.events), ["FLOODGATE_MADE_PER_REQUEST"]);
    const [warning] = web.events.filter((event) => event.type === "warning");
    assert.match(warning?.type === "warning" ? warning.message : "", /Call it once, when the app is set up/);
  });

  it("each of many apps may make its limit once, without a warning", async (web) => {
    const { onEvent } = web.listen("warning");
    for (let i = 0; i < 15; i++) {
      const app = await web.start({ limits: [{ limit: 100, window: "1m", onEvent }], ownStores: true });
      await app.statuses(i === 0 ? 30 : 1);
    }
    assert.deepEqual(codes(web.events), []);
  });

  it("two middlewares that count one request twice cause a warning", async (web) => {
    const { onEvent } = web.listen("warning");
    const app = await web.start({ limits: [1, 2].map(() => ({ name: "api", limit: 100, window: "1m", onEvent })) });
    await app.statuses(5);
    assert.deepEqual(codes(web.events), ["FLOODGATE_COUNTED_TWICE"]);
  });
}
