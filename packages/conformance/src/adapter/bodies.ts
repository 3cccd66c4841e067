import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { AdapterSuite } from "./web.js";

/** The option `body`: the same answer for every 429. */
export function bodyCases({ describe, it }: AdapterSuite): void {
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
  });
}
