import assert from "node:assert/strict";
import { fixedWindow, type Limiter, type StateView } from "../../src/index.js";
import { describe, it, items, type RequestView, self } from "./app.js";

/** Plans: other numbers for some requests. */
const policy = fixedWindow({ limit: 1, window: "1m" });
const plans = { paid: { limit: 3 }, partner: { algorithm: "gcra" as const, limit: 2, window: "1h" as const } };
const limit = { name: "plan", policy, plans, key: "header:x-user" as const };

describe("plans", () => {
  for (const [kind, plan] of [
    ["at once", (request: RequestView) => request.header("x-plan")],
    ["by promise", async (request: RequestView) => request.header("x-plan")],
  ] as const) {
    it(`limit each request by the numbers of its plan (plan known ${kind})`, async (web) => {
      const app = await web.start({ ...limit, plan });
      assert.deepEqual(await app.statuses(2, "/", { "x-user": "ann" }), [200, 429]);
      assert.deepEqual(await app.statuses(4, "/", { "x-user": "bob", "x-plan": "paid" }), [200, 200, 200, 429]);
      assert.deepEqual(await app.statuses(3, "/", { "x-user": "cy", "x-plan": "partner" }), [200, 200, 429]);
      assert.deepEqual(await app.statuses(2, "/", { "x-user": "dan", "x-plan": "unheard of" }), [200, 429]);
    });
  }

  it("keep a key's usage when its plan changes, and show the current plan", async (web) => {
    const app = await web.start({ ...limit, plan: (request) => request.header("x-plan") });
    const ann = { "x-user": "ann" };
    await app.statuses(1, "/", ann);
    const paid = await app.get("/", { ...ann, "x-plan": "paid" });
    assert.deepEqual(items(paid, "ratelimit"), { plan: { r: 1, t: 45 } });
    assert.deepEqual(items(paid, "ratelimit-policy"), { plan: { q: 3, w: 60 } });
    assert.equal((await app.get("/", ann)).status, 429);
  });

  it("refund by their own numbers", async (web) => {
    const { onEvent, heard } = web.listen("refunded");
    const app = await web.start({
      ...limit,
      key: "global",
      plan: () => "paid",
      cost: 3,
      onEvent,
      refundWhen: (status) => status === 200,
    });
    await app.get();
    await heard;
    assert.equal((await app.get()).status, 200);
  });

  it("are all cleared by a reset", async (web) => {
    const app = await web.start({ ...limit, key: "ip", plan: (request) => request.header("x-plan") });
    const partner = { "x-plan": "partner" };
    assert.deepEqual([...(await app.statuses(2)), ...(await app.statuses(3, "/", partner))], [200, 429, 200, 200, 429]);
    await app.limits[0]?.limiter.reset(self);
    assert.deepEqual([...(await app.statuses(1)), ...(await app.statuses(1, "/", partner))], [200, 200]);
  });

  it("are all shown by an inspection, each with the count as it sees it", async (web) => {
    const app = await web.start({ ...limit, key: "ip", plan: (request) => request.header("x-plan") });
    await app.statuses(2, "/", { "x-plan": "paid" });
    await app.statuses(1, "/", { "x-plan": "partner" });
    const limiter = app.limits[0]?.limiter as Limiter;
    await limiter.block(self, "1h");
    const { atMs, decision, states, block, ban } = await limiter.keyState(self);
    assert.deepEqual([decision, decision.policy, block, ban], [await limiter.peek(self), policy, { untilMs: atMs + 3_600_000 }, undefined]);
    const seen = states.map(({ plan, decision: { limit, policy }, state }) => [plan, limit, policy.algorithm, shown(state)]);
    assert.deepEqual(seen, [
      [undefined, 1, "fixed-window", 2],
      ["paid", 3, "fixed-window", 2],
      ["partner", 2, "gcra", 1],
    ]);
  });

  it("call the plan function once per request, and only if a matching rule has plans", async (web) => {
    let asked = 0;
    const plan = (): string => `${++asked}`;
    const rules = [
      { ...limit, key: "global" as const, name: "one", match: { path: "/planned" } },
      { ...limit, key: "global" as const, name: "other", match: { path: "/planned" } },
      { name: "plain", policy },
    ];
    const app = await web.start({ limits: [{ rules, plan }], steps: [{ limit: 0 }, { route: "/" }, { route: "/planned" }] });
    await app.get("/");
    assert.equal(asked, 0);
    await app.get("/planned");
    assert.equal(asked, 1);
  });

  it("do not apply to a request whose plan is null", async (web) => {
    const app = await web.start({ ...limit, key: "global", plan: () => null as never });
    assert.deepEqual(await app.statuses(2), [200, 429]);
  });

  for (const answer of [1, {}, true]) {
    it(`report the invalid plan ${JSON.stringify(answer)} as an error of that request`, async (web) => {
      const app = await web.start({ ...limit, key: "global", plan: () => answer as never });
      assert.equal((await app.get()).status, 500);
      assert.deepEqual(app.codes, ["FLOODGATE_MISSING_PLAN"]);
    });
  }

  it("require the middleware option `plan`", async (web) => {
    await assert.rejects(web.start({ ...limit, key: "global" }), { code: "FLOODGATE_MISSING_PLAN" });
  });

  it("are required when `plan` is set", async (web) => {
    await assert.rejects(web.start({ policy, plan: () => "paid" }), { code: "FLOODGATE_CONFLICTING_OPTIONS", at: ["plan"] });
  });

  it("are part of a limit's identity: the same name with other plans is refused", async (web) => {
    const plan = (): string => "paid";
    for (let i = 0; i < 2; i++) await web.start({ ...limit, plan });
    const { plans: _, ...unplanned } = limit;
    const otherwise = [{ ...plans, paid: { limit: 4 } }, { paid: plans.paid }, { basic: plans.paid, partner: plans.partner }];
    for (const options of [unplanned, ...otherwise.map((plans) => ({ ...limit, plan, plans }))]) {
      await assert.rejects(web.start(options), { code: "FLOODGATE_NAME_TAKEN" });
    }
  });

  for (const [wrong, message] of [
    [{ paid: { countRejected: true } }, /no option `countRejected`/],
    [{ paid: { limit: -1 } }, /plans\.paid|limit.*at least 1/],
    [{ paid: { limt: 3 } }, /no option `limt`.*Did you mean `limit`/],
    [{ paid: { capacity: 3 } }, /no option `capacity`/],
    [{ paid: 3 }, /takes an object of options/],
    [{}, /must name the plans/],
    [[], /must name the plans/],
  ] as const) {
    it(`reject the option ${JSON.stringify(wrong)}`, async (web) => {
      await assert.rejects(web.start({ ...limit, plan: () => "paid", plans: wrong as never }), (error: Error) =>
        message.test(error.message),
      );
    });
  }

  it("are policies themselves: one with a `policy` is refused, with what to write", async (web) => {
    const wrong = { gold: { policy: fixedWindow({ limit: 5, window: "1m" }) } } as never;
    await assert.rejects(web.start({ ...limit, plans: wrong, plan: () => "gold" }), {
      code: "FLOODGATE_INVALID_OPTION",
      at: ["plans", "gold", "policy"],
      message: "rateLimit: plans.gold is a policy itself. Write gold: fixedWindow({ ... }).",
    });
  });
});

/** The count of the only window, or the level of a bucket. */
function shown(state: StateView): number | undefined {
  if (state.kind === "windows") return state.windows[0]?.count;
  return state.kind === "bucket" ? state.level : undefined;
}
