import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { AdapterSuite } from "./web.js";

/** Responses to allowed and limited requests. */
export function responseCases({ describe, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 2, window: "1m" });

  describe("responses", () => {
    it("one line limits an app per client, in memory", async (web) => {
      const app = await web.start({ limits: [{ limit: 2, window: "1h" }], ownStores: true });
      assert.deepEqual(await app.statuses(3), [200, 200, 429]);
    });

    it("each middleware without a store gets its own", async (web) => {
      const limit = { policy, key: "global" } as const;
      const app = await web.start({
        limits: [limit, limit],
        steps: [
          { route: "/a", limits: [0] },
          { route: "/b", limits: [1] },
        ],
        ownStores: true,
      });
      assert.deepEqual(await app.statuses(3, "/a"), [200, 200, 429]);
      assert.equal((await app.get("/b")).status, 200);
    });

    it("an allowed request is served as usual", async (web) => {
      const app = await web.start({ policy });
      const response = await app.get();
      assert.equal(response.status, 200);
      assert.equal(response.body.served, true);
      assert.equal(response.headers["retry-after"], undefined);
      assert.equal(response.headers["cache-control"], undefined);
    });

    it("the handler finds the decision on its request", async (web) => {
      const app = await web.start({ name: "api", policy, cost: 2 });
      const { decision } = (await app.get()).body;
      assert.deepEqual(
        { ...decision, policy: decision.policy.algorithm },
        {
          allowed: true,
          limit: 2,
          remaining: 0,
          retryAfterMs: 45_000,
          resetAfterMs: 45_000,
          delayMs: 0,
          cost: 2,
          atMs: web.nowMs,
          name: "api",
          policy: "fixed-window",
          degraded: false,
        },
      );
    });

    it("a limited request gets a 429 problem that names the exceeded limits", async (web) => {
      const app = await web.start({ name: "api", policy });
      await app.statuses(2);
      const response = await app.get();
      assert.equal(response.status, 429);
      assert.match(response.headers["content-type"] ?? "", /^application\/problem\+json\b/);
      assert.equal(response.body.type, "https://iana.org/assignments/http-problem-types#quota-exceeded");
      assert.equal(response.body.status, 429);
      assert.equal(typeof response.body.title, "string");
      assert.deepEqual(response.body["violated-policies"], ["api"]);
      assert.deepEqual(app.errors, []);
    });

    it("a limited request does not reach its handler", async (web) => {
      let served = 0;
      const app = await web.start({ limits: [{ policy }], handler: () => ({ body: ++served }) });
      await app.statuses(4);
      assert.equal(served, 2);
    });

    it("a 429 has exactly one Retry-After and is not cacheable", async (web) => {
      const app = await web.start({ policy, headers: ["standard", "legacy"] });
      await app.statuses(2);
      const { status, lines } = await app.raw("/");
      assert.equal(status, 429);
      assert.deepEqual(lines("retry-after"), ["45"]);
      assert.deepEqual(lines("cache-control"), ["no-store"]);
    });

    it("HEAD and OPTIONS requests count too", async (web) => {
      const app = await web.start({ policy });
      const head = await app.send("head");
      assert.equal(head.status, 200);
      assert.match(head.headers["ratelimit"] ?? "", /;r=1;/);
      const options = await app.send("options");
      assert.match(options.headers["ratelimit"] ?? "", /;r=0;/);
      for (const method of ["get", "head", "options"] as const) assert.equal((await app.send(method)).status, 429, method);
    });

    it("a limited HEAD request gets the 429 headers and no body", async (web) => {
      const app = await web.start({ policy });
      await app.statuses(2);
      const response = await app.send("head");
      assert.equal(response.status, 429);
      assert.equal(response.headers["retry-after"], "45");
      assert.ok(!response.text);
    });

    it("requests for unknown routes count too", async (web) => {
      const app = await web.start({ policy });
      assert.deepEqual(await app.statuses(3, "/nowhere"), [404, 404, 429]);
    });

    it("a streamed response has the headers and arrives complete", async (web) => {
      async function* chunks(): AsyncGenerator<string> {
        for (const chunk of ["one ", "two ", "three"]) {
          await new Promise((resolve) => setImmediate(resolve));
          yield chunk;
        }
      }
      const app = await web.start({ limits: [{ policy }], handler: () => ({ chunks: chunks() }) });
      const { status, lines, text } = await app.raw("/");
      assert.equal(status, 200);
      assert.equal(text, "one two three");
      assert.deepEqual(lines("ratelimit"), ['"default";r=1;t=45']);
    });

    it("invalid options throw when the middleware is made", async (web) => {
      for (const [wrong, code] of [
        [{}, "FLOODGATE_MISSING_LIMIT"],
        [{ limit: Number.NaN, window: "1m" }, "FLOODGATE_INVALID_OPTION"],
        [{ limit: 1, window: 0 }, "FLOODGATE_INVALID_DURATION"],
        [{ limit: 1, window: "1m", kye: "ip" }, "FLOODGATE_UNKNOWN_OPTION"],
        [{ limit: 1, window: "1m", key: "usr" }, "FLOODGATE_UNKNOWN_KEY"],
        [{ limit: 1, window: "1m", onLimited: "no" }, "FLOODGATE_INVALID_OPTION"],
      ] as const) {
        await assert.rejects(web.start(wrong as never), { code });
      }
    });
  });
}
