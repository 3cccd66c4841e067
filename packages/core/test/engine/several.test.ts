import assert from "node:assert/strict";
import { type Decision, fixedWindow, type HeadersOption } from "../../src/index.js";
import { type App, describe, it, items, type LimitSetup, later, type Response, self } from "./app.js";

function remaining(app: App, name: string, key: string = self): number {
  const limiter = app.limits.map((limit) => limit.limiters.get(name)).find((found) => found !== undefined);
  assert.ok(limiter !== undefined, name);
  return (limiter.peek(key) as Decision).remaining;
}

/** Several limits on one request, in one middleware or in several. */
const wide = { name: "wide", policy: fixedWindow({ limit: 5, window: "1h" }) };
const tight = { name: "tight", policy: fixedWindow({ limit: 1, window: "1m" }) };

describe("several limits in one middleware", () => {
  for (const rules of [
    [wide, tight],
    [tight, wide],
  ]) {
    it(`are all charged, or none is: ${rules.map(({ name }) => name).join(", then ")}`, async (web) => {
      const app = await web.start({ rules });
      assert.deepEqual(await app.statuses(4), [200, 429, 429, 429]);
      assert.equal(remaining(app, "wide"), 4);
    });
  }

  it("are all charged, or none is, also in an asynchronous store", async (web) => {
    const app = await web.start({ rules: [wide, tight], store: later(web.store) });
    assert.deepEqual(await app.statuses(4), [200, 429, 429, 429]);
    assert.equal((await app.peek(self, "wide")).remaining, 4);
  });

  it("are all in the headers, and the most restrictive is the decision", async (web) => {
    const app = await web.start({ rules: [wide, tight] });
    const response = await app.get();
    assert.equal(response.body.decision.name, "tight");
    assert.deepEqual(items(response, "ratelimit-policy"), { wide: { q: 5, w: 3600 }, tight: { q: 1, w: 60 } });
    assert.deepEqual(Object.keys(items(response, "ratelimit")), ["wide", "tight"]);
  });

  it("the 429 names the limits that reject, and Retry-After is their longest wait", async (web) => {
    const rules = [wide, tight, { name: "daily", policy: fixedWindow({ limit: 1, window: "1d" }) }];
    const app = await web.start({ rules });
    await app.get();
    const response = await app.get();
    assert.deepEqual(response.body["violated-policies"], ["tight", "daily"]);
    const { tight: short, daily } = items(response, "ratelimit");
    assert.equal(response.headers["retry-after"], `${daily?.["t"]}`);
    assert.ok(Number(daily?.["t"]) > Number(short?.["t"]));
    assert.equal((await app.raw("/")).lines("retry-after").length, 1);
  });

  it("charge and show only matching rules", async (web) => {
    const app = await web.start({ rules: [wide, { ...tight, match: { path: "/other" } }] });
    assert.deepEqual(Object.keys(items(await app.get(), "ratelimit")), ["wide"]);
    assert.equal(remaining(app, "tight"), 1);
  });

  it("without a matching rule, the request passes with no decision and no headers", async (web) => {
    const app = await web.start({ rules: [{ ...tight, match: { method: "POST" } }] });
    const response = await app.get();
    assert.equal(response.status, 200);
    assert.equal(response.body.decision, undefined);
    assert.equal(response.headers["ratelimit"], undefined);
  });

  it("with different keys count separately", async (web) => {
    const app = await web.start({ rules: [wide, { ...tight, key: "header:x-user" }] });
    for (const [user, status] of [
      ["ann", 200],
      ["ann", 429],
      ["bob", 200],
    ] as const) {
      assert.equal((await app.get("/", { "x-user": user })).status, status);
    }
    assert.equal(remaining(app, "wide"), 3);
  });

  it("may have different costs for one request", async (web) => {
    const app = await web.start({
      rules: [
        { ...wide, cost: 3 },
        { ...tight, cost: 0 },
      ],
    });
    assert.deepEqual(await app.statuses(2), [200, 429]);
    assert.equal(remaining(app, "tight"), 1);
  });

  it("of which one has headers: false limit by it, and no header shows its numbers", async (web) => {
    const budget = { ...tight, policy: fixedWindow({ limit: 2, window: "1m" }), headers: false };
    for (const headers of ["standard", ["draft-6", "legacy"], false] as const) {
      const app = await web.start({ headers, rules: [wide, budget] });
      const allowed = await app.get();
      assert.equal(allowed.status, 200);
      if (headers === "standard") assert.deepEqual(items(allowed, "ratelimit"), { wide: { r: 4, t: 3585 } });
      await app.get();
      const limited = await app.get();
      assert.deepEqual([limited.status, limited.headers["retry-after"], limited.body["violated-policies"]], [429, "45", ["tight"]]);
      if (headers === "standard") assert.deepEqual(items(limited, "ratelimit"), { wide: { r: 3, t: 3585 } });
      const shown = ["limit", "remaining", "retry-after"].map((name) => limited.headers[`x-ratelimit-${name}`]);
      assert.deepEqual(shown, Array.isArray(headers) ? ["5", "3", "45"] : [undefined, undefined, undefined]);
      web.nowMs += 3_600_000;
    }
  });

  it("options beside rules are the defaults of each rule", async (web) => {
    const rules = [
      { ...wide, cost: 1 },
      { name: "other", policy: wide.policy },
    ];
    const app = await web.start({ rules, key: () => "everyone", cost: 2 });
    await app.get();
    assert.deepEqual([remaining(app, "wide", "everyone"), remaining(app, "other", "everyone")], [4, 3]);
  });
});

describe("several middlewares on one request", () => {
  for (const headers of ["draft-7", "draft-6", "legacy"] satisfies HeadersOption[]) {
    /** The limits in a response's headers. */
    const limitsIn = (response: Response): string[] =>
      Object.entries(response.headers as Record<string, string>)
        .filter(([name]) => /^(x-)?ratelimit(-limit)?$/.test(name))
        .map(([, value]) => value.replace(/^limit=|,.*/g, ""));

    for (const order of [
      [wide, tight],
      [tight, wide],
    ]) {
      it(`headers: "${headers}" show the more restrictive of ${order.map(({ name }) => name).join(", then ")}`, async (web) => {
        const app = await web.start({ limits: order.map((limit) => ({ ...limit, headers })) });
        assert.deepEqual(limitsIn(await app.get()), ["1"]);
      });
    }

    for (const [what, hidden] of [
      ["is in shadow mode", { ...tight, mode: "shadow", headers }],
      ["has `headers: false`", { ...tight, policy: fixedWindow({ limit: 2, window: "1m" }), headers: false }],
    ] satisfies [string, LimitSetup][]) {
      it(`headers: "${headers}" ignore an earlier middleware that ${what}`, async (web) => {
        const app = await web.start({ limits: [hidden, { ...wide, headers }] });
        for (let i = 0; i < 2; i++) {
          const response = await app.get();
          assert.deepEqual([response.status, limitsIn(response)], [200, ["5"]]);
        }
      });
    }
  }
});
