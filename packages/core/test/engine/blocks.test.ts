import assert from "node:assert/strict";
import { fixedWindow, type Limiter, type Store } from "../../src/index.js";
import { describe, it, items, later, self, type Web } from "./app.js";

/** A key that is blocked by hand is rejected for the time given, whatever its limit says. */
const policy = fixedWindow({ limit: 5, window: "1m" });

const stores: readonly (readonly [string, (web: Web) => Store])[] = [
  ["at once", (web) => web.store],
  ["by promise", (web) => later(web.store)],
];

describe("a block", () => {
  for (const [kind, storeOf] of stores) {
    it(`rejects with a 429 and Retry-After until its time is over (store answers ${kind})`, async (web) => {
      const { onEvent } = web.listen("limited");
      const app = await web.start({ name: "api", policy, headers: ["standard", "legacy"], onEvent, store: storeOf(web) });
      const limiter = app.limits[0]?.limiter as Limiter;
      assert.equal((await app.get()).status, 200);
      await limiter.block(self, "1h", { by: "ann" });
      const untilMs = web.nowMs + 3_600_000;
      web.nowMs += 1000;
      const { status, headers, body } = await app.get();
      assert.deepEqual([status, headers["retry-after"], headers["x-ratelimit-retry-after"]], [429, "3599", "3599"]);
      assert.equal(headers["ratelimit"], '"api";r=0;t=3599');
      assert.deepEqual([body["violated-policies"], body["retry-after"]], [["api"], 3599]);
      assert.deepEqual(
        web.events.map(({ type }) => type),
        ["allowed", "blocked", "limited"],
      );
      const [, blocked, limited] = web.events;
      assert.deepEqual(blocked, { type: "blocked", name: "api", key: limiter.keyText(self), by: "ann", forMs: 3_600_000 });
      assert.ok(limited !== undefined && "decision" in limited);
      assert.deepEqual(limited.decision?.blocked, { kind: "block", untilMs });
      await limiter.reset(self, { by: "bob" });
      assert.equal((await app.get()).status, 429);
      await limiter.unblock(self);
      const changes = web.events.filter(({ type }) => type === "reset" || type === "unblocked");
      assert.deepEqual(
        changes.map((event) => [event.type, "by" in event && event.by]),
        [
          ["reset", "bob"],
          ["unblocked", undefined],
        ],
      );
      assert.deepEqual(
        web.requests.map((event) => "result" in event && event.result),
        ["allowed", "blocked", "blocked"],
      );
      assert.deepEqual(await app.statuses(6), [200, 200, 200, 200, 200, 429]);

      await limiter.block(self, "90s");
      web.nowMs += 89_999;
      assert.equal((await app.get()).headers["retry-after"], "1");
      web.nowMs += 1;
      assert.equal((await app.get()).status, 200);
    });
  }

  it("of one rule of several charges none of them, and of a shadow rule rejects nothing", async (web) => {
    const rules = [
      { name: "one", policy },
      { name: "two", policy },
      { name: "shadow", policy, mode: "shadow" },
    ] as const;
    const app = await web.start({ rules });
    const limiter = (name: string): Limiter => app.limits[0]?.limiters.get(name) as Limiter;
    await limiter("shadow").block(self, "1h");
    const passed = await app.get();
    assert.equal(passed.status, 200);
    assert.deepEqual(Object.keys(items(passed, "ratelimit")), ["one", "two"]);
    await limiter("two").block(self, "1h");
    const { status, body, headers } = await app.get();
    assert.deepEqual([status, body["violated-policies"], headers["retry-after"]], [429, ["two"], "3600"]);
    assert.equal((await limiter("one").peek(self)).remaining, 4);
    assert.equal((await limiter("two").peek(self)).retryAfterMs, 3_600_000);
    assert.equal((await limiter("shadow").peek(self)).allowed, false);
  });

  it("holds for every plan, and counts towards no ban", async (web) => {
    const ban = { after: 2, within: "1h", for: "1d" } as const;
    const { onEvent } = web.listen("banned");
    const plans = { pro: { limit: 50 } };
    let plan: string | undefined;
    const app = await web.start({ name: "api", policy, plans, plan: () => plan, ban, onEvent });
    const limiter = app.limits[0]?.limiter as Limiter;
    await limiter.block(self, "1m");
    for (plan of [undefined, "pro", "pro", undefined]) assert.equal((await app.get()).headers["retry-after"], "60");
    await limiter.unblock(self);
    assert.equal((await app.get()).status, 200);
    assert.ok(!web.events.some(({ type }) => type === "banned"));
  });

  it("stands beside a ban: a reset lifts the ban, and unblock lifts both", async (web) => {
    const strict = {
      name: "login",
      policy: fixedWindow({ limit: 1, window: "1s" }),
      ban: { after: 1, within: "1m", for: "1h" },
    } as const;
    const app = await web.start(strict);
    const limiter = app.limits[0]?.limiter as Limiter;
    assert.deepEqual(await app.statuses(2), [200, 429]);
    await limiter.block(self, "1m");
    assert.equal((await app.get()).headers["retry-after"], "3600");
    await limiter.reset(self);
    assert.equal((await app.get()).headers["retry-after"], "60");
    await limiter.unblock(self);
    assert.deepEqual(await app.statuses(2), [200, 429]);
    assert.equal((await app.get()).headers["retry-after"], "3600");
    await limiter.unblock(self);
    web.nowMs += 1000;
    assert.equal((await app.get()).status, 200);
  });

  it("is the limiter's to end, but its name is given back by the middleware's close", async (web) => {
    const app = await web.start({ name: "api", policy });
    assert.throws(() => app.limits[0]?.limiter.close(), { code: "FLOODGATE_INVALID_OPTION", message: /Close the middleware/ });
  });
});
