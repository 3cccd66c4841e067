import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { AdapterSuite } from "./web.js";

/** `onLimited`: the app's own answer to a limited request. */
export function onLimitedCases({ it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 1, window: "1m" });

  for (const [when, wait] of [
    ["at once", false],
    ["later", true],
  ] as const) {
    it(`onLimited replaces the 429 body and keeps the headers (answers ${when})`, async (web) => {
      const reply = { status: 418, body: { slow: "down" } };
      const app = await web.start({ policy, onLimited: () => (wait ? Promise.resolve(reply) : reply) });
      assert.equal((await app.get()).status, 200);
      const { status, headers, body } = await app.get();
      assert.deepEqual([status, body], [418, { slow: "down" }]);
      assert.match(headers["content-type"] ?? "", /^application\/json\b/);
      assert.deepEqual([headers["retry-after"], headers["ratelimit"], headers["cache-control"]], ["45", '"default";r=0;t=45', "no-store"]);
    });
  }

  it("onLimited may send a raw response, which keeps the rate limit headers", async (web) => {
    const app = await web.start({ policy, onLimited: () => ({ raw: true, status: 418, body: { slow: "down" } }) });
    await app.get();
    const { status, lines, text } = await app.get();
    assert.deepEqual([status, text], [418, '{"slow":"down"}']);
    assert.deepEqual([lines("ratelimit"), lines("retry-after")], [['"default";r=0;t=45'], ["45"]]);
  });

  it("onLimited receives the request and the decision, and responds with 429 unless it sets a status", async (web) => {
    const app = await web.start({
      name: "api",
      policy,
      onLimited: (request, decision) => ({
        body: [request.method, request.path, decision?.name, decision?.allowed, decision?.retryAfterMs],
      }),
    });
    await app.get();
    const { status, body } = await app.get();
    assert.deepEqual([status, body], [429, ["GET", "/", "api", false, 45_000]]);
  });

  it("onLimited receives no decision if the request has no key", async (web) => {
    const app = await web.start({
      policy,
      key: () => undefined,
      onMissingKey: "reject",
      onLimited: (_, decision) => ({ body: decision === undefined ? "keyless" : "limited" }),
    });
    assert.equal((await app.get()).body, "keyless");
  });
}
