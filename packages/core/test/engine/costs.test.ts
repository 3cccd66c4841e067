import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, it, items } from "./app.js";

const policy = fixedWindow({ limit: 10, window: "1m" });

describe("cost", () => {
  for (const [kind, cost] of [
    ["a number", 4],
    ["what a function answers", () => 4],
    ["what a function promises", async () => 4],
  ] as const) {
    it(`is ${kind}`, async (web) => {
      const app = await web.start({ policy, cost });
      assert.deepEqual(await app.statuses(3), [200, 200, 429]);
      assert.deepEqual(items(await app.get(), "ratelimit"), { default: { r: 2, t: 45 } });
    });
  }

  it("can depend on the request, such as its body; a rejected cost takes nothing", async (web) => {
    const app = await web.start({ policy, cost: (request) => (request.body as { items: unknown[] }).items.length });
    const statuses: number[] = [];
    for (const count of [8, 5, 2, 1]) statuses.push((await app.post("/", { items: Array.from({ length: count }, () => 0) })).status);
    assert.deepEqual(statuses, [200, 429, 200, 429]);
  });

  for (const [kind, cost] of [
    ["0", 0],
    ["0 of a function", () => 0],
    ["0 by promise", async () => 0],
  ] as const) {
    it(`${kind} passes free of charge, even when nothing is left`, async (web) => {
      const app = await web.start({ policy, cost: 10 });
      await app.get();
      const free = await web.start({ policy, cost });
      const response = await free.get();
      assert.equal(response.status, 200);
      assert.equal(response.headers["ratelimit"], undefined);
      assert.equal(response.body.decision, undefined);
      assert.equal((await app.get()).status, 429);
    });
  }

  for (const bad of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "1", null, undefined, 2 ** 53, {}, []]) {
    it(`${JSON.stringify(bad) ?? "undefined"} (${typeof bad} ${String(bad)}) from a function is an error of that request`, async (web) => {
      for (const cost of [() => bad as never, async () => bad as never]) {
        const app = await web.start({ policy, cost });
        assert.equal((await app.get()).status, 500);
        assert.deepEqual(app.codes, ["FLOODGATE_INVALID_COST"]);
      }
    });
  }
});
