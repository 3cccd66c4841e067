import assert from "node:assert/strict";
import { expectWarnings } from "../../../../test/expected-warnings.js";
import { consumeAll, createLimiter, fixedWindow, gcra, type Policy, type PolicyOptions } from "../../src/index.js";
import { algorithms, type OptionDescription, toPolicy } from "../../src/rules.js";
import { FaultyStore } from "../faulty-store.js";
import { describe, it, items, type LimitSetup, later, type RequestView, self } from "./app.js";

expectWarnings("FLOODGATE_LIMIT_OF_ZERO");

/** A limit of 0 in every algorithm, with and without its optional options, as the examples of their descriptions show them. */
const zeros = Object.entries(algorithms).flatMap(([algorithm, { options }]) =>
  [true, false].map((whole) => {
    const described = Object.entries<OptionDescription>(options).filter(([, { optional }]) => whole || optional !== true);
    return Object.fromEntries([["algorithm", algorithm], ...described.map(([option, description]) => [option, zeroOf(description)])]);
  }),
) as unknown as PolicyOptions[];

function zeroOf({ type, least, example }: OptionDescription): unknown {
  if (type === "whole number") return least ?? Number(example);
  return type === "flag" ? example === "true" : example;
}

/** Policy, cost and mode per request. */
const policy = fixedWindow({ limit: 10, window: "1m" });
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
      message: /"plan" is a function of the request, .* Give the rule a policy and `plans`/,
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

describe("a limit of 0", () => {
  for (const zero of zeros) {
    const name = Object.values(zero).join(" ");
    for (const [kind, setup] of [
      ["set in the options", { policy: zero }],
      ["made by the factory", { policy: toPolicy("test", zero) }],
      ["returned by a policy function", { policy: () => zero }],
      ["promised by a policy function", { policy: async (_: RequestView) => toPolicy("test", zero) }],
    ] as [string, LimitSetup][]) {
      it(`of a ${name}, ${kind}, rejects every request without asking the store, and sets no Retry-After`, async (web) => {
        const store = new FaultyStore(web.store);
        const { onEvent } = web.listen("limited");
        const ban = { after: 1, within: "1m", for: "1h" } as const;
        const app = await web.start({ ...setup, store, ban, onEvent, onStoreError: "deny", headers: ["standard", "legacy"] });
        const { status, headers, body } = await app.get();
        assert.deepEqual([status, headers["retry-after"], headers["ratelimit"]], [429, undefined, '"default";r=0']);
        assert.match(headers["ratelimit-policy"] as string, /^"default";q=0(;w=60)?$/);
        assert.deepEqual(
          [body.detail, body["violated-policies"]],
          ["The request costs 1, more than the limit of 0 ever allows.", ["default"]],
        );
        assert.deepEqual(await app.statuses(2), [429, 429]);
        assert.deepEqual([store.asked, app.errors], [0, []]);
        assert.deepEqual(
          web.events.filter(({ type }) => type !== "warning").map(({ type }) => type),
          ["limited", "limited", "limited"],
        );
      });
    }
  }

  it("warns once if it is in the options, and not if a function or a plan sets it", async (web) => {
    const { onEvent } = web.listen("warning");
    const zero = { limit: 0, window: "1m" } as const;
    await web.start({ ...zero, name: "off", onEvent });
    assert.deepEqual(
      web.events.map((event) => event.type === "warning" && event.code),
      ["FLOODGATE_LIMIT_OF_ZERO"],
    );
    const planned = await web.start({
      name: "plans",
      limit: 1,
      window: "1m",
      plan: () => "none",
      plans: { none: { limit: 0 } },
      onEvent,
    });
    const chosen = await web.start({ name: "function", policy: () => fixedWindow(zero), onEvent });
    assert.deepEqual([...(await planned.statuses(1)), ...(await chosen.statuses(1))], [429, 429]);
    assert.equal(web.events.filter(({ type }) => type === "warning").length, 1);
  });

  it("charges no other limits; in shadow mode it emits events and the others decide", async (web) => {
    const { onEvent } = web.listen("limited");
    const wide = { name: "wide", policy: fixedWindow({ limit: 2, window: "1m" }) };
    const off = { name: "off", policy: fixedWindow({ limit: 0, window: "1m" }) };
    const enforced = await web.start({ rules: [wide, off], onEvent });
    assert.deepEqual(await enforced.statuses(3), [429, 429, 429]);
    assert.equal((await enforced.peek(self, "wide")).remaining, 2);
    assert.equal((await enforced.peek(self, "off")).allowed, false);
    web.events.length = 0;
    const watched = await web.start({ rules: [{ ...off, mode: "shadow" }, wide], onEvent });
    web.events.length = 0;
    assert.deepEqual(await watched.statuses(3), [200, 200, 429]);
    assert.deepEqual(
      web.events.map((event) => `${event.type} ${"name" in event ? event.name : ""}`),
      ["shadow-limited off", "allowed wide", "shadow-limited off", "allowed wide", "shadow-limited off", "limited wide"],
    );
  });

  it("allows requests that cost 0, are exempt or are skipped without a key", async (web) => {
    const zero = { limit: 0, window: "1m" } as const;
    for (const [i, limit] of (
      [{ cost: 0 }, { exempt: { ips: [self] } }, { key: () => undefined, onMissingKey: "skip" }] as LimitSetup[]
    ).entries()) {
      const app = await web.start({ ...zero, name: `zero ${i}`, ...limit });
      assert.deepEqual(await app.statuses(1), [200]);
    }
  });

  it("of a limiter rejects without asking the store, alone and in consumeAll", async (web) => {
    const off = createLimiter({ name: "off", policy: fixedWindow({ limit: 0, window: "1m" }), store: web.store });
    const wide = createLimiter({ name: "wide", policy: fixedWindow({ limit: 2, window: "1m" }), store: web.store });
    for (const { allowed, retryAfterMs, remaining } of [off.consume("k"), off.peek("k")]) {
      assert.deepEqual([allowed, retryAfterMs, remaining], [false, Number.POSITIVE_INFINITY, 0]);
    }
    const { allowed, decision, all } = consumeAll([
      { limiter: wide, key: "k" },
      { limiter: off, key: "k" },
    ]);
    assert.deepEqual([allowed, decision.name, all.map(({ remaining }) => remaining)], [false, "off", [2, 0]]);
    assert.equal(wide.peek("k").remaining, 2);
    const later1 = createLimiter({ name: "off", policy: fixedWindow({ limit: 0, window: "1m" }), store: later(web.store) });
    assert.equal((await later1.consume("k")).allowed, false);
  });
});

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

describe("shadow mode", () => {
  const watched = { name: "watched", policy: fixedWindow({ limit: 1, window: "1m" }), mode: "shadow" as const };

  it("counts and emits events, but rejects nothing and sets no header", async (web) => {
    const { onEvent } = web.listen("shadow-limited");
    const app = await web.start({ ...watched, onEvent, headers: ["standard", "legacy"] });
    for (let i = 0; i < 3; i++) {
      const { status, headers } = await app.get();
      assert.equal(status, 200);
      assert.deepEqual(
        Object.keys(headers).filter((name) => /ratelimit|retry-after/.test(name)),
        [],
      );
    }
    assert.deepEqual(
      web.events.map(({ type }) => type),
      ["allowed", "shadow-limited", "shadow-limited"],
    );
  });

  it("counts only requests that the enforced rules allow", async (web) => {
    const { onEvent } = web.listen("limited");
    const enforced = { name: "enforced", policy: fixedWindow({ limit: 2, window: "1m" }) };
    const app = await web.start({ rules: [{ ...watched, policy: fixedWindow({ limit: 10, window: "1m" }) }, enforced], onEvent });
    assert.deepEqual(await app.statuses(4), [200, 200, 429, 429]);
    assert.equal((await app.peek(self, "watched")).remaining, 8);
    const response = await app.get();
    assert.deepEqual(Object.keys(items(response, "ratelimit")), ["enforced"]);
    assert.deepEqual(response.body["violated-policies"], ["enforced"]);
  });

  it("does not affect enforced rules when it would reject", async (web) => {
    const enforced = { name: "enforced", policy: fixedWindow({ limit: 3, window: "1m" }) };
    const app = await web.start({ rules: [watched, enforced] });
    assert.deepEqual(await app.statuses(4), [200, 200, 200, 429]);
    web.nowMs += 60_000;
    assert.equal((await app.get()).body.decision.name, "enforced");
  });
});

describe("asynchronous functions", () => {
  it("work for all options at once, with an asynchronous store", async (web) => {
    const app = await web.start({
      name: "all",
      store: later(web.store),
      skip: async (request) => request.path.startsWith("/health"),
      key: async (request, { ip }) => [ip, request.header("x-user") ?? "nobody"],
      clientIp: async () => "192.0.2.1",
      policy: async () => policy,
      cost: async () => 5,
      onLimited: async () => ({ body: "later" }),
    });
    assert.deepEqual(await app.statuses(3), [200, 200, 429]);
    assert.equal((await app.get()).body, "later");
    assert.equal((await app.get("/", { "x-user": "ann" })).status, 200);
    assert.equal((await app.limits[0]?.limiter.reset(["192.0.2.1", "nobody"])) ?? undefined, undefined);
    assert.equal((await app.get()).status, 200);
    assert.deepEqual(app.errors, []);
  });

  it("do not let concurrent requests exceed the limit", async (web) => {
    const app = await web.start({ policy, store: later(web.store), key: async () => "everyone" });
    const responses = await Promise.all(Array.from({ length: 25 }, () => app.get()));
    assert.equal(responses.filter(({ status }) => status === 200).length, 10);
  });
});
