import assert from "node:assert/strict";
import type { FloodgateError, FloodgateEvent, RuleSource } from "../../src/index.js";
import type { PlainRule, RuleSet, RuleUser } from "../../src/rules.js";
import { describe, gate, it, type RequestView, self } from "./app.js";

/** A rule source whose versions the test sets. */
class HandSource implements RuleSource {
  current: RuleSet;
  readonly users: RuleUser[] = [];

  constructor(...rules: PlainRule[]) {
    this.current = { rules };
  }

  subscribe(user: RuleUser): () => void {
    this.users.push(user);
    return () => void this.users.splice(this.users.indexOf(user), 1);
  }

  /** Activates a version as every source must: in all middlewares, or in none. */
  offer(set: RuleSet): void {
    const ready = this.users.map((user) => user.prepare(set));
    this.current = set;
    for (const swap of ready) swap();
  }
}

/** Live rules: a source changes them while the server runs. */
const rule = (name: string, limit: number, more: Partial<PlainRule> = {}): PlainRule => ({
  name,
  policy: { algorithm: "fixed-window", limit, window: "1m" },
  ...more,
});

describe("live rules", () => {
  it("apply from the next request on, and unchanged rules keep their counts", async (web) => {
    const source = new HandSource(rule("stays", 5), rule("goes", 2));
    const app = await web.start({ rules: source });
    assert.deepEqual(await app.statuses(3), [200, 200, 429]);
    source.offer({ rules: [rule("stays", 5), rule("comes", 9)] });
    const response = await app.get();
    assert.equal(response.status, 200);
    assert.match(response.headers["ratelimit"] as string, /^"stays";r=2;t=\d+, "comes";r=8;t=\d+$/);
  });

  it("keep the usage when only numbers change, clamped to the new limit", async (web) => {
    const source = new HandSource(rule("one", 5));
    const app = await web.start({ rules: source });
    await app.statuses(3);
    source.offer({ rules: [rule("one", 10)] });
    assert.equal((await app.peek()).remaining, 7);
    source.offer({ rules: [rule("one", 2)] });
    assert.equal((await app.get()).status, 429);
  });

  it("decide each request by one version, even if its functions are slow", async (web) => {
    const source = new HandSource(rule("old-a", 1, { key: "user" }), rule("old-b", 1, { key: "user" }));
    const asked = gate();
    const answered = gate();
    const user = async (): Promise<string> => {
      asked.open();
      await answered.opened;
      return "ann";
    };
    const app = await web.start({ rules: source, keys: { user } });
    const response = app.get();
    await asked.opened;
    source.offer({ rules: [rule("new-a", 1, { key: "user" })] });
    answered.open();
    assert.match((await response).headers["ratelimit"] as string, /^"old-a";.*, "old-b";/);
    assert.match((await app.get()).headers["ratelimit"] as string, /^"new-a";r=0;t=\d+$/);
  });

  it("are refused as a whole if one rule is invalid, and the active version stays", async (web) => {
    const source = new HandSource(rule("one", 5, { key: "user" }));
    const app = await web.start({ rules: source, keys: { user: () => "ann" } });
    for (const [bad, code, at] of [
      [rule("bad", 1, { key: "usr" }), "FLOODGATE_UNKNOWN_KEY", ["rules", 1, "key"]],
      [rule("bad", 1, { key: ["ip", "usr"] }), "FLOODGATE_UNKNOWN_KEY", ["rules", 1, "key", 1]],
      [rule("bad", 1, { settle: "tokens" }), "FLOODGATE_UNKNOWN_COST", ["rules", 1, "settle"]],
      [rule("bad", 1, { plans: { paid: { limit: 2 } } }), "FLOODGATE_MISSING_PLAN", ["rules", 1, "plans"]],
      [rule("one", 1), "FLOODGATE_DUPLICATE_NAME", ["rules", 1, "name"]],
      [rule("bad", -1), "FLOODGATE_INVALID_OPTION", ["rules", 1, "policy", "limit"]],
    ] as const) {
      assert.throws(() => source.offer({ rules: [rule("one", 9), bad] }), { code, at });
    }
    assert.match((await app.get()).headers["ratelimit-policy"] as string, /^"one";q=5;/);
  });

  it("report all mistakes at once", async (web) => {
    const source = new HandSource(rule("one", 5));
    await web.start({ rules: source });
    assert.throws(
      () => source.offer({ rules: [rule("a", -1), rule("b", 1), rule("c", 1, { key: "usr" })] }),
      ({ at, cause }: FloodgateError) => {
        assert.deepEqual(at, ["rules", 0, "policy", "limit"]);
        assert.deepEqual(
          (cause as AggregateError).errors.map((error: FloodgateError) => error.at),
          [at, ["rules", 2, "key"]],
        );
        return true;
      },
    );
  });

  it("reserve no names for a refused version, and release theirs when the middleware is closed", async (web) => {
    const source = new HandSource(rule("one", 5));
    const app = await web.start({ rules: source });
    await web.start({ name: "taken", limit: 3, window: "1m" });
    // Where no name is taken, the refused version is not activated either.
    const first = new HandSource(rule("one", 5));
    first.users.push({ prepare: () => () => assert.fail("a refused version was activated") }, ...source.users);
    for (const offering of [source, first]) {
      assert.throws(() => offering.offer({ rules: [rule("free", 1), rule("taken", 1)] }), {
        code: "FLOODGATE_NAME_TAKEN",
        at: ["rules", 1, "name"],
      });
    }
    await web.start({ name: "free", limit: 3, window: "1m" });
    await assert.rejects(web.start({ rules: new HandSource(rule("one", 5)) }), /stands for rules of another source/);
    app.limits[0]?.close();
    await web.start({ name: "one", limit: 3, window: "1m" });
  });

  it("release the names of removed and renamed rules", async (web) => {
    const source = new HandSource(rule("stays", 5), rule("goes", 5), rule("old", 5));
    await web.start({ rules: source });
    source.offer({ rules: [rule("stays", 5), rule("new", 5)] });
    for (const name of ["goes", "old"]) await web.start({ name, limit: 3, window: "1m" });
    for (const name of ["stays", "new"]) {
      await assert.rejects(web.start({ name, limit: 3, window: "1m" }), { code: "FLOODGATE_NAME_TAKEN" });
    }
  });

  it("passed as a promise are refused; the error says to await it", async (web) => {
    await assert.rejects(web.start({ rules: Promise.resolve(new HandSource(rule("one", 5))) as never }), /was a promise: await it first/);
  });

  it("may set exemptions for all rules, in addition to those of the middleware", async (web) => {
    const source = new HandSource(rule("one", 1));
    const clientIp = (request: RequestView): string | undefined => request.header("x-client") ?? self;
    const app = await web.start({ rules: source, clientIp, exempt: { ips: ["192.0.2.1"] } });
    assert.deepEqual(await app.statuses(2), [200, 429]);
    source.offer({ rules: [rule("one", 1)], exempt: { ips: ["127.0.0.0/8"] } });
    assert.deepEqual(await app.statuses(2), [200, 200]);
    assert.deepEqual(await app.statuses(2, "/", { "x-client": "192.0.2.1" }), [200, 200]);
    assert.deepEqual(await app.statuses(2, "/", { "x-client": "192.0.2.2" }), [200, 429]);
  });

  it("expose the limiters of the active version", async (web) => {
    const source = new HandSource(rule("one", 1));
    const app = await web.start({ rules: source });
    await app.statuses(1);
    source.offer({ rules: [rule("other", 1), rule("one", 1)] });
    const { limiter, limiters } = app.limits[0] as (typeof app.limits)[0];
    assert.deepEqual([limiter.name, [...limiters.keys()]], ["other", ["other", "one"]]);
    await limiters.get("one")?.reset(self);
    assert.equal((await app.get()).status, 200);
  });

  it("emit events to listeners until the middleware is closed", async (web) => {
    const { onEvent } = web.listen("rules-reloaded");
    const source = new HandSource(rule("one", 1));
    const app = await web.start({ rules: source, onEvent });
    const event: FloodgateEvent = { type: "rules-reloaded", source: "hand", version: "2" };
    for (const user of source.users) user.tell?.(event);
    assert.deepEqual(web.events, [event]);
    app.limits[0]?.close();
    assert.equal(source.users.length, 0);
    assert.equal((await app.get()).status, 200);
  });

  it("share counts between middlewares of one source and store, but not with other rules", async (web) => {
    const source = new HandSource(rule("one", 2));
    const app = await web.start({ limits: [{ rules: source }, { rules: source }], steps: [{ limit: 0 }, { limit: 1 }, { route: "/" }] });
    assert.deepEqual(await app.statuses(2), [200, 429]);
    source.offer({ rules: [rule("one", 4)] });
    await assert.rejects(web.start({ rules: [rule("one", 4) as never] }), { code: "FLOODGATE_NAME_TAKEN" });
  });
});
