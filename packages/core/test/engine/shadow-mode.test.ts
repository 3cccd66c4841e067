import assert from "node:assert/strict";
import { fixedWindow } from "../../src/index.js";
import { describe, it, items, type LimitSetup, self } from "./app.js";

const policy = fixedWindow({ limit: 1, window: "1m" });

const fails = (): never => {
  throw new Error("mine");
};
const rejects = (): Promise<never> => Promise.reject(new Error("mine"));

/** Mistakes that fail a request under a rule that is enforced. */
const mistakes: [string, LimitSetup][] = [
  ["a key function that throws", { policy, key: fails }],
  ["a key function that rejects", { policy, key: rejects }],
  ["an invalid key", { policy, key: () => ({}) as never }],
  ["a clientIp function that throws", { policy, clientIp: fails }],
  ["a cost function that throws", { policy, cost: fails }],
  ["an invalid cost", { policy, cost: () => -1 }],
  ["a policy function that throws", { policy: fails }],
  ["a policy function that answers nothing", { policy: () => undefined as never }],
  ["a match function that throws", { rules: [{ name: "default", policy, match: fails }] }],
  ["an invalid answer of a match function", { rules: [{ name: "default", policy, match: () => "yes" as never }] }],
  ["a plan function that rejects", { policy, plans: { pro: { limit: 2 } }, plan: rejects }],
  ["a skip function that throws", { policy, skip: fails }],
];

/** Requests that a rule cannot count, and that are no mistake of the app. */
const uncounted: [string, LimitSetup][] = [
  ["no key, with onMissingKey: error", { policy, key: () => undefined, onMissingKey: "error" }],
  ["no key, with onMissingKey: reject", { policy, key: () => undefined, onMissingKey: "reject" }],
  ["no client address", { policy, clientIp: () => undefined }],
];

describe("a rule in shadow mode", () => {
  for (const [mistake, limit] of mistakes) {
    it(`passes requests and warns once: ${mistake}`, async (web) => {
      const { onEvent } = web.listen("warning");
      const enforced = await web.start({ ...limit, onEvent });
      assert.deepEqual(await enforced.statuses(2), [500, 500]);
      web.events.length = 0;
      enforced.limits[0]?.close();
      const inShadow = await web.start({ mode: "shadow", ...limit, onEvent });
      assert.deepEqual(await inShadow.statuses(3), [200, 200, 200]);
      assert.deepEqual(inShadow.codes, []);
      const warnings = web.events.flatMap((event) => (event.type === "warning" ? [event.code] : []));
      assert.deepEqual(warnings, ["FLOODGATE_SHADOW_RULE_FAILS"]);
    });
  }

  for (const [lack, limit] of uncounted) {
    it(`passes requests that it cannot count: ${lack}`, async (web) => {
      const app = await web.start({ mode: "shadow", ...limit });
      assert.deepEqual(await app.statuses(2), [200, 200]);
    });
  }

  it("passes requests if its store throws", async (web) => {
    const { onEvent } = web.listen("warning");
    const store = {
      mode: "sync",
      consume: fails,
      consumeAll: fails,
      peek: fails,
      settle: fails,
      reset: fails,
      block: fails,
      unblock: fails,
      keyState: fails,
    } as const;
    const app = await web.start({ policy, store, mode: "shadow", onEvent });
    assert.deepEqual(await app.statuses(2), [200, 200]);
  });

  it("fails no request that other rules decide", async (web) => {
    const rules = [
      { name: "shadow", policy, key: fails, mode: "shadow" as const },
      { name: "enforced", policy },
    ];
    const { onEvent } = web.listen("warning");
    const app = await web.start({ rules, onEvent });
    assert.deepEqual(await app.statuses(2), [200, 429]);
  });
});

describe("shadow mode", () => {
  const shadow = { name: "shadow", policy: fixedWindow({ limit: 1, window: "1m" }), mode: "shadow" as const };

  it("counts and emits events, but rejects nothing and sets no header", async (web) => {
    const { onEvent } = web.listen("shadow-limited");
    const app = await web.start({ ...shadow, onEvent, headers: ["standard", "legacy"] });
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
    const app = await web.start({ rules: [{ ...shadow, policy: fixedWindow({ limit: 10, window: "1m" }) }, enforced], onEvent });
    assert.deepEqual(await app.statuses(4), [200, 200, 429, 429]);
    assert.equal((await app.peek(self, "shadow")).remaining, 8);
    const response = await app.get();
    assert.deepEqual(Object.keys(items(response, "ratelimit")), ["enforced"]);
    assert.deepEqual(response.body["violated-policies"], ["enforced"]);
  });

  it("does not affect enforced rules when it would reject", async (web) => {
    const enforced = { name: "enforced", policy: fixedWindow({ limit: 3, window: "1m" }) };
    const app = await web.start({ rules: [shadow, enforced] });
    assert.deepEqual(await app.statuses(4), [200, 200, 200, 429]);
    web.nowMs += 60_000;
    assert.equal((await app.get()).body.decision.name, "enforced");
  });
});
