import assert from "node:assert/strict";
import { type CostFunction, type FloodgateEvent, fixedWindow, tokenBucket } from "@floodgate/core";
import type { RequestView } from "./adapter.js";
import { type AdapterSuite, gate, later } from "./web.js";

/** `settle`: a cost that is known only when the response is done. */
export function settleCases({ describe, it }: AdapterSuite): void {
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
      it(`charges what a request has really cost, more or less than was reserved (said ${kind})`, async (web) => {
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

    it("charges into debt, which later requests wait for until it is paid off", async (web) => {
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

    it("leaves what was reserved where nothing is said", async (web) => {
      const app = await web.start({ policy, cost: 10, settle: used });
      await app.get();
      assert.equal((await app.peek()).remaining, 90);
    });

    it("is of each rule by itself", async (web) => {
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

    it("is not asked of a request that was rejected, nor where refundWhen gives all back", async (web) => {
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

    it("is not asked of a limit that is only watched and would have rejected", async (web) => {
      let asked = 0;
      const { onEvent, heard } = web.listen("settled");
      const rules = [
        { name: "watched", policy: fixedWindow({ limit: 1, window: "1m" }), cost: () => 2, settle: () => ++asked, mode: "shadow" as const },
        { name: "enforced", policy, settle: () => 5 },
      ];
      const app = await web.start({ rules, onEvent });
      assert.equal((await app.get()).status, 200);
      await heard;
      assert.equal(asked, 0);
    });

    it("is told the status", async (web) => {
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
      ["answers -1", () => -1],
      ["answers half a unit", () => 0.5],
      ["answers a text", () => "many" as never],
    ] as const) {
      it(`a function that ${what} is told to who listens, and harms no response`, async (web) => {
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

    it("waits for what is promised, so that a client which hangs up early pays what its request has cost", async (web) => {
      const { onEvent, heard } = web.listen("settled");
      const [begun, counted] = [gate(), gate()];
      const app = await web.start({
        limits: [{ policy, cost: 10, settle: () => counted.opened.then(() => 80), onEvent }],
        handler: async () => {
          begun.open();
          await counted.opened;
          return {};
        },
      });
      const request = app.open("/");
      await begun.opened;
      request.destroy();
      await app.deserted();
      assert.equal((await app.peek()).remaining, 90);
      counted.open();
      await heard;
      assert.equal((await app.peek()).remaining, 20);
    });

    it("cannot settle what is free: a cost of 0 beside it is refused", async (web) => {
      await assert.rejects(web.start({ policy, cost: 0, settle: used }), { code: "FLOODGATE_CONFLICTING_OPTIONS", at: ["cost"] });
    });

    it("is a function or a name", async (web) => {
      await assert.rejects(
        web.start({ policy, settle: 5 as never }),
        /`settle` must be a function or the name of one of `costs`, but was 5/,
      );
    });

    for (const option of ["cost", "settle"] as const) {
      it(`a name of ${option} that \`costs\` does not define is refused, with the nearest`, async (web) => {
        await assert.rejects(web.start({ policy, [option]: "token", costs: { tokens: used } }), {
          code: "FLOODGATE_UNKNOWN_COST",
          message: /names "token", which `costs` does not define. Did you mean "tokens"\?/,
        });
      });
    }

    it("a cost may be named too", async (web) => {
      const app = await web.start({ policy, cost: "used", costs: { used } });
      await app.get("/", { "x-used": "30" });
      assert.equal((await app.peek()).remaining, 70);
    });
  });
}
