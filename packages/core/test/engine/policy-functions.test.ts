import assert from "node:assert/strict";
import { fixedWindow, gcra, type Policy } from "../../src/index.js";
import { describe, it, items, type RequestView, self } from "./app.js";

const plans: Record<string, Policy> = { free: fixedWindow({ limit: 1, window: "1m" }), paid: fixedWindow({ limit: 3, window: "1m" }) };
const planOf = (request: RequestView): Policy => plans[request.header("x-plan") ?? "free"] as Policy;

describe("a policy that is a function of the request", () => {
  for (const [kind, choose] of [
    ["at once", planOf],
    ["by promise", async (request: RequestView) => planOf(request)],
  ] as const) {
    it(`limits each request by the policy that it returns ${kind}`, async (web) => {
      const app = await web.start({ name: "plan", policy: choose, key: "header:x-user" });
      assert.deepEqual(await app.statuses(2, "/", { "x-user": "ann" }), [200, 429]);
      assert.deepEqual(await app.statuses(4, "/", { "x-user": "bob", "x-plan": "paid" }), [200, 200, 200, 429]);
    });
  }

  it("keeps the usage when the policy changes, and shows the current policy", async (web) => {
    const app = await web.start({ name: "plan", policy: planOf, key: "global" });
    await app.statuses(1);
    assert.deepEqual(await app.statuses(3, "/", { "x-plan": "paid" }), [200, 200, 429]);
    assert.deepEqual(items(await app.get("/", { "x-plan": "paid" }), "ratelimit-policy"), { plan: { q: 3, w: 60 } });
  });

  it("may return a new policy each time, or one in rules file notation", async (web) => {
    const made = await web.start({ name: "made", policy: () => fixedWindow({ limit: 2, window: "1m" }) });
    assert.deepEqual(await made.statuses(3), [200, 200, 429]);
    const written = await web.start({ name: "written", policy: () => ({ algorithm: "fixed-window", limit: 2, window: "1m" }) });
    assert.deepEqual(await written.statuses(3), [200, 200, 429]);
  });

  it("can be reset by its middleware's limiter, for all policies at once", async (web) => {
    const app = await web.start({
      name: "plan",
      policy: (request) => (request.header("x-plan") ? gcra({ limit: 1, window: "1h" }) : planOf(request)),
    });
    const paid = { "x-plan": "paid" };
    assert.deepEqual([...(await app.statuses(2)), ...(await app.statuses(2, "/", paid))], [200, 429, 200, 429]);
    await app.limits[0]?.limiter.reset(self);
    assert.deepEqual([...(await app.statuses(1)), ...(await app.statuses(1, "/", paid))], [200, 200]);
  });

  for (const [kind, choose] of [
    ["at once", () => plans["paid"] as Policy],
    ["by promise", async () => plans["paid"] as Policy],
  ] as const) {
    it(`without parameters can be reset by a process that has decided nothing yet (answers ${kind})`, async (web) => {
      const [busy, fresh] = [await web.start({ name: "plan", policy: choose }), await web.start({ name: "plan", policy: choose })];
      assert.deepEqual(await busy.statuses(4), [200, 200, 200, 429]);
      await fresh.limits[0]?.limiter.reset(self);
      assert.deepEqual(await busy.statuses(1), [200]);
    });
  }

  it("cannot be reset by a process that has decided nothing yet: the error says what to do", async (web) => {
    const app = await web.start({ name: "plan", policy: planOf });
    const reset = async () => app.limits[0]?.limiter.reset(self);
    await assert.rejects(reset, {
      code: "FLOODGATE_NO_POLICY",
      message: /"plan" is a function of the request, .* Give the rule a policy, and plans/,
    });
    await app.get();
    await reset();
    assert.deepEqual(await app.statuses(2), [200, 429]);
  });

  for (const answer of [undefined, null, 0, Number.NaN, "unlimited", true, Number.POSITIVE_INFINITY]) {
    it(`that returns ${String(answer)} is an error of that request, never unlimited`, async (web) => {
      for (const policy of [() => answer as never, async () => answer as never]) {
        const app = await web.start({ name: `plan-${policy.constructor.name}`, policy });
        assert.deepEqual(await app.statuses(2), [500, 500]);
        assert.deepEqual(app.codes, ["FLOODGATE_NO_POLICY", "FLOODGATE_NO_POLICY"]);
      }
    });
  }

  it("that returns a policy with a limit of NaN is an error of that request", async (web) => {
    const app = await web.start({ policy: () => ({ algorithm: "fixed-window", limit: Number.NaN, window: "1m" }) });
    assert.equal((await app.get()).status, 500);
    assert.deepEqual(app.codes, ["FLOODGATE_INVALID_OPTION"]);
  });
});
