import assert from "node:assert/strict";
import { expectWarnings } from "../../../../test/expected-warnings.js";
import { consumeAll, createLimiter, fixedWindow, type PolicyOptions } from "../../src/index.js";
import { descriptions, type OptionDescription, toPolicy } from "../../src/rules.js";
import { FaultyStore } from "../faulty-store.js";
import { describe, it, type LimitSetup, later, type RequestView, self } from "./app.js";

expectWarnings("FLOODGATE_LIMIT_OF_ZERO");

/** A limit of 0 in every algorithm, with and without its optional options, as the examples of their descriptions show them. */
const zeros = Object.entries(descriptions).flatMap(([algorithm, { options }]) =>
  [true, false].map((whole) => {
    const described = Object.entries<OptionDescription>(options).filter(([, { optional }]) => whole || optional !== true);
    return Object.fromEntries([["algorithm", algorithm], ...described.map(([option, description]) => [option, zeroOf(description)])]);
  }),
) as unknown as PolicyOptions[];

function zeroOf({ type, least, example }: OptionDescription): unknown {
  if (type === "whole number") return least ?? Number(example);
  if (typeof type === "object") return type.find((word) => String(word) === example);
  return type === "flag" ? example === "true" : example;
}

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
        assert.match(headers["ratelimit-policy"] as string, /^"default";q=0(;w=(60|2678400)|;qu="concurrent-requests")?$/);
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
    const inShadow = await web.start({ rules: [{ ...off, mode: "shadow" }, wide], onEvent });
    web.events.length = 0;
    assert.deepEqual(await inShadow.statuses(3), [200, 200, 429]);
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
