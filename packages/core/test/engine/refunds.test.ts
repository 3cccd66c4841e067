import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, gate, type Handler, it, later, self, turn } from "./app.js";

/** `refundWhen`: refunds a request by its response status. */
const policy = fixedWindow({ limit: 5, window: "1m" });
const asked: Handler = (request) => ({ status: Number(request.header("x-status") ?? 200) });

describe("refundWhen", () => {
  for (const [status, refunded] of [
    [200, false],
    [204, false],
    [302, false],
    [400, true],
    [404, true],
    [500, true],
    [503, true],
  ] as const) {
    it(`with status >= 400: a ${status} is ${refunded ? "refunded" : "not refunded"}`, async (web) => {
      const judged = gate();
      const { onEvent, heard } = web.listen("refunded");
      const refundWhen = (seen: number): boolean => {
        assert.equal(seen, status);
        judged.open();
        return seen >= 400;
      };
      const app = await web.start({ limits: [{ policy, cost: 2, refundWhen, onEvent }], handler: asked });
      assert.equal((await app.get("/", { "x-status": `${status}` })).status, status);
      await judged.opened;
      if (refunded) {
        const event = await heard;
        assert.equal(event.type === "refunded" && event.units, 2);
      }
      assert.equal((await app.peek()).remaining, refunded ? 5 : 3);
    });
  }

  it("receives the error's status when the handler throws", async (web) => {
    const { onEvent, heard } = web.listen("refunded");
    const handler = (): never => {
      throw new Error("handler");
    };
    const app = await web.start({ limits: [{ policy, refundWhen: (status) => status === 500, onEvent }], handler });
    assert.equal((await app.get()).status, 500);
    await heard;
    assert.equal((await app.peek()).remaining, 5);
  });

  it("of a rule decides for its limit, and the middleware's for the others", async (web) => {
    const { onEvent, heard } = web.listen("refunded");
    const rules = [
      { name: "attempts", policy, refundWhen: () => false },
      { name: "tokens", policy, cost: 2, refundWhen: "5xx,404" },
      { name: "requests", policy },
    ];
    const app = await web.start({ limits: [{ rules, refundWhen: (status) => status === 503, onEvent }], handler: asked });
    const left = (): Promise<number[]> => Promise.all(rules.map(async ({ name }) => (await app.peek(self, name)).remaining));
    await app.get("/", { "x-status": "404" });
    await heard;
    assert.deepEqual(await left(), [4, 5, 4]);
    await app.get("/", { "x-status": "503" });
    while ((await left())[2] !== 4) await turn();
    assert.deepEqual(await left(), [3, 5, 4]);
  });

  it("refunds nothing for the limit's own 429", async (web) => {
    let judged = 0;
    const refundWhen = (status: number): boolean => ++judged > 0 && status === 429;
    const app = await web.start({ limits: [{ policy: fixedWindow({ limit: 1, window: "1m" }), refundWhen }] });
    assert.deepEqual(await app.statuses(4), [200, 429, 429, 429]);
    assert.equal(judged, 1);
  });

  it("refunds an earlier limit when a later one responds with 429", async (web) => {
    const { onEvent, heard } = web.listen("refunded");
    const outer = { name: "outer", policy, refundWhen: (status: number) => status === 429, onEvent };
    const app = await web.start({ limits: [outer, { name: "inner", policy: fixedWindow({ limit: 1, window: "1m" }) }] });
    assert.deepEqual(await app.statuses(2), [200, 429]);
    await heard;
    assert.equal((await app.peek()).remaining, 4);
  });

  it("refunds each of several limits, also with an asynchronous store", async (web) => {
    const refunded: string[] = [];
    const both = gate();
    const rules = [
      { name: "a", policy },
      { name: "b", policy, cost: 3 },
    ];
    const app = await web.start({
      limits: [
        {
          rules,
          store: later(web.store),
          refundWhen: () => true,
          onEvent: (event) => {
            if (event.type === "refunded" && refunded.push(`${event.name} ${event.units}`) === 2) both.open();
          },
        },
      ],
    });
    await app.get();
    await both.opened;
    assert.deepEqual(refunded, ["a 1", "b 3"]);
  });

  it("refunds nothing and creates no state after the window has ended", async (web) => {
    const judged = gate();
    const refundWhen = (): boolean => {
      judged.open();
      return true;
    };
    const handler: Handler = () => {
      web.nowMs += 60_000;
      return { body: "late" };
    };
    const app = await web.start({ limits: [{ policy, refundWhen }], handler });
    await app.get();
    await judged.opened;
    const { remaining, resetAfterMs } = await app.peek(self);
    assert.deepEqual([remaining, resetAfterMs], [5, 0]);
  });

  it("may return a promise", async (web) => {
    const { onEvent, heard } = web.listen("refunded");
    const app = await web.start({ policy, cost: 2, refundWhen: async (status) => status === 200, onEvent });
    assert.equal((await app.get()).status, 200);
    await heard;
    assert.equal((await app.peek()).remaining, 5);
  });

  for (const [how, fail] of [
    ["throws", (fault: Error) => assert.fail(fault)],
    ["rejects", (fault: Error) => Promise.reject(fault)],
  ] as const) {
    it(`that ${how} emits refund-failed and leaves the response unchanged`, async (web) => {
      const { onEvent, heard } = web.listen("refund-failed");
      const fault = new Error("refundWhen");
      const app = await web.start({ policy, refundWhen: () => fail(fault), onEvent });
      assert.equal((await app.get()).status, 200);
      assert.deepEqual(await heard, { type: "refund-failed", error: fault });
    });
  }
});
