import assert from "node:assert/strict";
import { expectWarnings } from "../../../../test/expected-warnings.js";
import { type CostFunction, type FloodgateEvent, fixedWindow, tokenBucket } from "../../src/index.js";
import { describe, it, later, type RequestView } from "./app.js";

expectWarnings("onEvent: a listener has failed");

/** `settle`: the real cost, known only when the response is done. */
const policy = tokenBucket({ capacity: 100, refill: 1, every: "1s" });
const used = (request: RequestView): number | undefined => {
  const text = request.header("x-used");
  return text === undefined ? undefined : Number(text);
};

describe("settle", () => {
  for (const [kind, settle] of [
    ["at once", used],
    ["by promise", async (request: RequestView) => used(request)],
    ["by name", "used"],
  ] as [string, string | CostFunction<RequestView>][]) {
    it(`replaces the reserved cost by the real one, higher or lower (returned ${kind})`, async (web) => {
      const limit = { policy, key: "global" as const, cost: 10, settle, costs: { used } };
      for (const [cost, left] of [
        [3, 97],
        [10, 90],
        [60, 40],
        [0, 100],
      ] as const) {
        const { onEvent, heard } = web.listen("settled");
        const app = await web.start({ ...limit, name: `used-${kind}-${cost}`, onEvent });
        assert.equal((await app.get("/", { "x-used": `${cost}` })).status, 200);
        if (cost !== 10) {
          const event = await heard;
          assert.deepEqual(event.type === "settled" && [event.cost, event.units], [cost, cost - 10]);
        }
        assert.equal((await app.peek("global")).remaining, left);
      }
    });
  }

  it("can charge into debt; later requests wait until it is paid off", async (web) => {
    const { onEvent, heard } = web.listen("settled");
    const app = await web.start({ policy, cost: 10, settle: used, onEvent });
    await app.get("/", { "x-used": "160" });
    await heard;
    const rejected = await app.get();
    assert.deepEqual([rejected.status, rejected.headers["retry-after"]], [429, "70"]);
    web.nowMs += 69_999;
    assert.equal((await app.get()).status, 429);
    web.nowMs += 1;
    assert.equal((await app.get()).status, 200);
  });

  it("keeps the reserved cost if it returns undefined", async (web) => {
    const app = await web.start({ policy, cost: 10, settle: used });
    await app.get();
    assert.equal((await app.peek()).remaining, 90);
  });

  it("settles each rule by itself", async (web) => {
    const { onEvent, heard } = web.listen("settled");
    const rules = [
      { name: "requests", policy: fixedWindow({ limit: 5, window: "1m" }) },
      { name: "tokens", policy, cost: 10, settle: "used" },
    ];
    const app = await web.start({ rules, costs: { used }, onEvent, store: later(web.store) });
    await app.get("/", { "x-used": "25" });
    await heard;
    assert.equal((await app.peek("127.0.0.1", "requests")).remaining, 4);
    assert.equal((await app.peek("127.0.0.1", "tokens")).remaining, 75);
  });

  it("is not called for rejected or refunded requests", async (web) => {
    let asked = 0;
    const settle = (): number => ++asked;
    const rejecting = await web.start({ name: "rejecting", policy: fixedWindow({ limit: 1, window: "1m" }), cost: () => 2, settle });
    assert.equal((await rejecting.get()).status, 429);
    const { onEvent, heard } = web.listen("refunded");
    const refunding = await web.start({ name: "refunding", policy, settle, refundWhen: () => true, onEvent });
    await refunding.get();
    await heard;
    assert.equal(asked, 0);
  });

  it("is not called for a shadow limit that would have rejected", async (web) => {
    let asked = 0;
    const { onEvent, heard } = web.listen("settled");
    const rules = [
      { name: "shadow", policy: fixedWindow({ limit: 1, window: "1m" }), cost: () => 2, settle: () => ++asked, mode: "shadow" as const },
      { name: "enforced", policy, settle: () => 5 },
    ];
    const app = await web.start({ rules, onEvent });
    assert.equal((await app.get()).status, 200);
    await heard;
    assert.equal(asked, 0);
  });

  it("receives the response status", async (web) => {
    const { onEvent, heard } = web.listen("settled");
    const app = await web.start({
      limits: [{ policy, settle: (_, response) => (response?.status === 201 ? 50 : 0), onEvent }],
      handler: () => ({ status: 201 }),
    });
    await app.get();
    await heard;
    assert.equal((await app.peek()).remaining, 50);
  });

  for (const [what, settle] of [
    ["throws", () => assert.fail("mine")],
    ["rejects", async () => assert.fail("mine")],
    ["returns -1", () => -1],
    ["returns half a unit", () => 0.5],
    ["returns a string", () => "many" as never],
  ] as const) {
    it(`that ${what} emits settle-failed and does not affect the response`, async (web) => {
      const { onEvent, heard } = web.listen("settle-failed");
      const throwing = (event: FloodgateEvent): void => {
        onEvent(event);
        if (event.type === "settle-failed") assert.fail("listener");
      };
      const app = await web.start({ policy, cost: 10, settle, onEvent: throwing });
      assert.equal((await app.get()).status, 200);
      const event = await heard;
      assert.deepEqual(event.type === "settle-failed" && [event.name, event.key], ["default", "127.0.0.1"]);
      assert.equal((await app.peek()).remaining, 90);
      assert.deepEqual(app.errors, []);
    });
  }

  it("is refused with a hold that is no duration, at its place", async (web) => {
    await assert.rejects(web.start({ policy, cost: 2, settle: used, hold: 60 }), { code: "FLOODGATE_INVALID_DURATION", at: ["hold"] });
  });

  it("is refused beside a cost of 0", async (web) => {
    await assert.rejects(web.start({ policy, cost: 0, settle: used }), { code: "FLOODGATE_CONFLICTING_OPTIONS", at: ["cost"] });
  });

  it("must be a function or a name", async (web) => {
    await assert.rejects(web.start({ policy, settle: 5 as never }), /`settle` must be a function or the name of one of `costs`, but was 5/);
  });

  for (const option of ["cost", "settle"] as const) {
    it(`an unknown name for ${option} is refused, and the error suggests the nearest in \`costs\``, async (web) => {
      await assert.rejects(web.start({ policy, [option]: "token", costs: { tokens: used } }), {
        code: "FLOODGATE_UNKNOWN_COST",
        message: /names "token", which `costs` does not define. Did you mean "tokens"\?/,
      });
    });
  }

  it("and cost may be names in `costs`", async (web) => {
    const app = await web.start({ policy, cost: "used", costs: { used } });
    await app.get("/", { "x-used": "30" });
    assert.equal((await app.peek()).remaining, 70);
  });
});
