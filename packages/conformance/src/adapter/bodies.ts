import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import { FaultyStore } from "../faulty-store.js";
import type { AdapterSuite } from "./web.js";

/** The option `body`: the same answer for every 429. */
export function bodyCases({ adapter, describe, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 1, window: "1m" });

  describe("body", () => {
    for (const [kind, body, type, text] of [
      ["a text", "Slow down, €", /^text\/plain; ?charset=utf-8$/i, "Slow down, €"],
      ["an empty text", "", /^text\/plain; ?charset=utf-8$/i, ""],
      ["an object", { error: "Too many requests", code: 42 }, /^application\/json\b/, '{"error":"Too many requests","code":42}'],
      ["an array", ["slow", "down"], /^application\/json\b/, '["slow","down"]'],
    ] as const) {
      it(`${kind} replaces the 429 body and keeps the status and the headers`, async (web) => {
        const app = await web.start({ policy, body });
        assert.equal((await app.get()).status, 200);
        const response = await app.raw("/");
        assert.equal(response.status, 429);
        assert.equal(response.text, text);
        assert.match(response.lines("content-type").join(), type);
        assert.deepEqual(response.lines("retry-after"), ["45"]);
        assert.deepEqual(response.lines("ratelimit"), ['"default";r=0;t=45']);
        assert.deepEqual(response.lines("cache-control"), ["no-store"]);
      });
    }

    it("is not sent to HEAD requests", async (web) => {
      const app = await web.start({ policy, body: "Slow down" });
      await app.get();
      const response = await app.send("head");
      assert.equal(response.status, 429);
      assert.ok(!response.text);
    });

    it("answers requests that lack a key, banned keys and a limit of 0", async (web) => {
      const { onEvent } = web.listen("banned");
      for (const limit of [
        { policy, key: "header:x-api-key", onMissingKey: "reject" },
        { policy, ban: { after: 1, within: "1m", for: "1h" }, name: "banned" },
        { limit: 0, window: "1m", name: "zero" },
      ] as const) {
        const app = await web.start({ ...limit, body: "Slow down", onEvent });
        await app.statuses(2);
        const response = await app.get();
        assert.deepEqual([response.status, response.text], [429, "Slow down"], limit.name);
      }
    });

    it("leaves the 503 of a store that fails as it is", async (web) => {
      const store = new FaultyStore(adapter.store(() => web.nowMs));
      store.fault = "rejects";
      const { onEvent } = web.listen("store-error");
      const app = await web.start({ policy, store, onStoreError: "deny", body: "Slow down", onEvent });
      const response = await app.get();
      assert.equal(response.status, 503);
      assert.match(response.headers["content-type"] ?? "", /^application\/problem\+json\b/);
    });

    it("is refused beside onLimited, or if it is no text and no object", async (web) => {
      const onLimited = () => ({ status: 429, body: "no" });
      await assert.rejects(web.start({ policy, body: "no", onLimited }), { code: "FLOODGATE_CONFLICTING_OPTIONS", at: ["body"] });
      const circle: { self?: object } = {};
      circle.self = circle;
      for (const body of [null, 42, true, () => "no", Promise.resolve("no"), new Uint8Array(2), new Map(), circle, { big: 1n }]) {
        await assert.rejects(web.start({ policy, body } as never), { code: "FLOODGATE_INVALID_OPTION", at: ["body"] });
      }
    });
  });
}
