import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import { until } from "./clients.js";
import { Timers } from "./timers.js";
import type { AdapterSuite } from "./web.js";

/** `onLimited`, `skip` and `onEvent`. */
export function hookCases({ describe, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 1, window: "1m" });

  describe("onLimited", () => {
    for (const [kind, wait] of [
      ["at once", false],
      ["later", true],
    ] as const) {
      it(`replaces the 429 body and keeps the headers (answers ${kind})`, async (web) => {
        const reply = { status: 418, body: { slow: "down" } };
        const app = await web.start({ policy, onLimited: () => (wait ? Promise.resolve(reply) : reply) });
        assert.equal((await app.get()).status, 200);
        const response = await app.get();
        assert.equal(response.status, 418);
        assert.match(response.headers["content-type"] ?? "", /^application\/json\b/);
        assert.deepEqual(response.body, { slow: "down" });
        assert.equal(response.headers["retry-after"], "45");
        assert.equal(response.headers["ratelimit"], '"default";r=0;t=45');
        assert.equal(response.headers["cache-control"], "no-store");
      });

      it(`that fails ${kind} is an error of that request`, async (web) => {
        const fault = new Error("onLimited");
        const app = await web.start({
          policy,
          onLimited: () => {
            if (wait) return Promise.reject(fault);
            throw fault;
          },
        });
        assert.deepEqual(await app.statuses(2), [200, 500]);
        assert.deepEqual(app.errors, [fault]);
      });
    }

    it("without a status responds with 429", async (web) => {
      const app = await web.start({ policy, onLimited: () => ({ body: { slow: "down" } }) });
      assert.deepEqual(await app.statuses(2), [200, 429]);
    });

    for (const [kind, reply] of [
      ["at once", undefined],
      ["by promise", Promise.resolve(undefined)],
    ] as const) {
      it(`that sends no response, ${kind}, gets the default 429`, async (web) => {
        const timers = new Timers();
        const { warn } = console;
        console.warn = () => undefined;
        try {
          await timers.during(async () => {
            const app = await web.start({ policy, onLimited: () => reply });
            await app.get();
            let response: Awaited<ReturnType<typeof app.get>> | undefined;
            const asked = app.get().then((answer) => {
              response = answer;
            });
            await until(() => {
              timers.advance(1000);
              return response !== undefined;
            }, "an answer");
            await asked;
            const { status, headers, body } = response ?? assert.fail("no answer");
            assert.deepEqual([status, headers["content-type"], body.status], [429, "application/problem+json", 429]);
            assert.deepEqual([headers["retry-after"], headers["ratelimit"]], ["45", '"default";r=0;t=45']);
            assert.deepEqual(app.errors, []);
          });
        } finally {
          console.warn = warn;
        }
      });
    }

    it("receives the request and the decision", async (web) => {
      const app = await web.start({
        name: "api",
        policy,
        onLimited: (request, decision) => ({
          body: [request.method, request.path, decision?.name, decision?.allowed, decision?.retryAfterMs],
        }),
      });
      await app.get();
      assert.deepEqual((await app.get()).body, ["GET", "/", "api", false, 45_000]);
    });

    it("receives no decision if the request has no key", async (web) => {
      const app = await web.start({
        policy,
        key: () => undefined,
        onMissingKey: "reject",
        onLimited: (_, decision) => ({ body: decision === undefined ? "keyless" : "limited" }),
      });
      assert.equal((await app.get()).body, "keyless");
    });

    it("is not called for allowed requests or in shadow mode", async (web) => {
      let calls = 0;
      const onLimited = () => ({ body: ++calls });
      const app = await web.start({ policy, mode: "shadow", onLimited });
      assert.deepEqual(await app.statuses(3), [200, 200, 200]);
      assert.equal(calls, 0);
    });
  });

  describe("skip", () => {
    for (const [kind, skip] of [
      ["at once", (health: boolean) => health],
      ["by promise", async (health: boolean) => health],
    ] as const) {
      it(`allows requests for which it returns true, uncounted and without headers (answers ${kind})`, async (web) => {
        const app = await web.start({
          limits: [{ policy, skip: (request) => skip(request.header("x-health") === "yes") }],
        });
        const health = { "x-health": "yes" };
        assert.deepEqual(await app.statuses(3, "/", health), [200, 200, 200]);
        assert.equal((await app.get("/", health)).headers["ratelimit"], undefined);
        assert.deepEqual(await app.statuses(2), [200, 429]);
        assert.deepEqual(await app.statuses(1, "/", health), [200]);
      });
    }
  });
}
