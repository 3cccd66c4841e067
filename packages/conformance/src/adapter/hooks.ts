import assert from "node:assert/strict";
import { fixedWindow } from "@floodgate/core";
import type { LimitSetup } from "./adapter.js";
import { until } from "./clients.js";
import { unhandledDuring } from "./faults.js";
import { Timers } from "./timers.js";
import { type AdapterSuite, later } from "./web.js";

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

  for (const [kind, answering] of [
    ["at once", (answer: unknown) => () => answer as boolean],
    ["by promise", (answer: unknown) => async () => answer as boolean],
  ] as const) {
    for (const nothing of [undefined, null]) {
      it(`skip that returns ${nothing} ${kind} skips nothing`, async (web) => {
        const app = await web.start({ policy, skip: answering(nothing) });
        assert.deepEqual(await app.statuses(2), [200, 429]);
      });

      it(`refundWhen that returns ${nothing} ${kind} refunds nothing`, async (web) => {
        const { onEvent } = web.listen("refund-failed");
        const app = await web.start({ policy, refundWhen: answering(nothing), onEvent });
        assert.deepEqual(await app.statuses(2), [200, 429]);
        assert.deepEqual(
          web.events.map(({ type }) => type),
          ["allowed", "limited"],
        );
      });

      it(`match that returns ${nothing} ${kind} never matches, and warns once per rule`, async (web) => {
        const { onEvent } = web.listen("warning");
        const rules = ["a", "b"].map((name) => ({ name, policy, match: answering(nothing) }));
        const app = await web.start({ rules, onEvent });
        assert.deepEqual(await app.statuses(3), [200, 200, 200]);
        assert.deepEqual(
          web.events.map((event) => (event.type === "warning" ? [event.code, /"[ab]"/.exec(event.message)?.[0]] : event.type)),
          ["a", "b"].map((name) => ["FLOODGATE_MATCH_ANSWERS_NOTHING", `"${name}"`]),
        );
      });
    }

    for (const answer of ["yes", "", 0, 1, {}, [], Number.NaN]) {
      const shown = JSON.stringify(answer);
      for (const [option, setup] of [
        ["skip", { policy, skip: answering(answer) }],
        ["match", { rules: [{ name: "rule", policy, match: answering(answer) }] }],
      ] as const) {
        it(`${option} that returns ${shown} ${kind} is an error of that request, which is not served`, async (web) => {
          const app = await web.start(setup as LimitSetup);
          assert.deepEqual(await app.statuses(2), [500, 500]);
          assert.deepEqual(app.codes, ["FLOODGATE_INVALID_ANSWER", "FLOODGATE_INVALID_ANSWER"]);
          assert.match(
            (app.errors[0] as Error).message,
            new RegExp(`\`${option}\` must answer true or false, but answered .*Write ${option}: `),
          );
        });
      }

      it(`refundWhen that returns ${shown} ${kind} refunds nothing, and emits refund-failed`, async (web) => {
        const { onEvent, heard } = web.listen("refund-failed");
        const app = await web.start({ policy, refundWhen: answering(answer), onEvent });
        assert.deepEqual(await app.statuses(1), [200]);
        const event = await heard;
        assert.equal(event.type === "refund-failed" && (event.error as { code: string }).code, "FLOODGATE_INVALID_ANSWER");
        assert.deepEqual(await app.statuses(1), [429]);
      });
    }
  }

  describe("onEvent", () => {
    for (const [how, fail] of [
      ["at once", () => assert.fail("onEvent")],
      ["later", async () => assert.fail("onEvent")],
    ] as const) {
      it(`that fails ${how} does not fail requests, and leaves no unhandled rejection`, async (web) => {
        const { warn } = console;
        console.warn = () => undefined;
        try {
          const unhandled = await unhandledDuring(async () => {
            const app = await web.start({ policy, onEvent: fail });
            assert.deepEqual(await app.statuses(3), [200, 429, 429]);
          });
          assert.deepEqual(unhandled, []);
        } finally {
          console.warn = warn;
        }
      });
    }

    it("receives each decision with its rule and key", async (web) => {
      const { onEvent } = web.listen("limited");
      const app = await web.start({ name: "api", policy, key: "header:x-user", onEvent });
      await app.statuses(2, "/", { "x-user": "ann" });
      assert.deepEqual(
        web.events.map((event) => [event.type, "name" in event && event.name, "key" in event && event.key]),
        [
          ["allowed", "api", "ann"],
          ["limited", "api", "ann"],
        ],
      );
    });

    it("receives no event for a limit that allowed when another rejected, also with an asynchronous store", async (web) => {
      const { onEvent } = web.listen("limited");
      const rules = [
        { name: "a", policy },
        { name: "b", policy: fixedWindow({ limit: 5, window: "1m" }) },
      ];
      const app = await web.start({ rules, onEvent, store: later(web.store) });
      await app.statuses(2);
      assert.deepEqual(
        web.events.map((event) => `${event.type} ${"name" in event ? event.name : ""}`),
        ["allowed a", "allowed b", "limited a"],
      );
    });
  });
}
