import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, it, type LimitSetup, later, unhandledDuring } from "./app.js";

/** `onLimited`, `skip` and `onEvent`. */
const policy = fixedWindow({ limit: 1, window: "1m" });

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
