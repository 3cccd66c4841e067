import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { FaultyStore } from "../faulty-store.js";
import { describe, it, memory } from "./app.js";

/** The option `body`: the same answer for every 429. */
const policy = fixedWindow({ limit: 1, window: "1m" });

describe("body", () => {
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
    const store = new FaultyStore(memory(() => web.nowMs));
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
