import assert from "node:assert/strict";
import { expectWarnings } from "../../../../test/expected-warnings.js";
import { createLimiter, type FloodgateEvent, fixedWindow, type Store } from "../../src/index.js";
import { FaultyStore, fault } from "../faulty-store.js";
import { describe, gate, it, items, type LimitSetup, later, memory, self, turn, type Web } from "./app.js";

expectWarnings("onEvent: a listener has failed");

/** A ban rejects a key for a while after repeated rejections. */
const policy = fixedWindow({ limit: 1, window: "1s" });
const ban = { after: 3, within: "1m", for: "1h" } as const;
const login = { name: "login", policy, ban };

const stores = [
  ["at once", (web: Web) => web.store],
  ["by promise", (web: Web) => later(web.store)],
] as const;

const countOf = (web: Web, type: FloodgateEvent["type"]): number => web.events.filter((event) => event.type === type).length;

describe("a ban", () => {
  for (const [kind, storeOf] of stores) {
    it(`begins with the configured number of rejections and lasts the configured time (store answers ${kind})`, async (web) => {
      const { onEvent, heard } = web.listen("banned");
      const app = await web.start({ ...login, onEvent, store: storeOf(web) });
      assert.deepEqual(await app.statuses(4), [200, 429, 429, 429]);
      assert.deepEqual(await heard, { type: "banned", name: "login", key: self, forMs: 3_600_000, shadow: false });
      // The limit alone would allow this request.
      web.nowMs += 1000;
      const banned = await app.get();
      assert.equal(banned.status, 429);
      assert.equal(banned.headers["retry-after"], "3599");
      assert.deepEqual(items(banned, "ratelimit"), { login: { r: 0, t: 3599 } });
      assert.deepEqual(banned.body["violated-policies"], ["login"]);
      // Requests during a ban do not extend it.
      web.nowMs += 3_598_000;
      assert.equal((await app.get()).headers["retry-after"], "1");
      web.nowMs += 1000;
      assert.deepEqual(await app.statuses(3), [200, 429, 429]);
    });
  }

  for (const [kind, storeOf] of stores) {
    for (const after of [1, 2, 3, 7]) {
      it(`after ${after} rejections sets Retry-After on the rejection that begins it (store answers ${kind})`, async (web) => {
        const app = await web.start({ ...login, ban: { ...ban, after }, headers: ["standard", "legacy"], store: storeOf(web) });
        const waits: unknown[] = [];
        for (let i = 0; i <= after + 1; i++) waits.push((await app.get()).headers["retry-after"]);
        assert.deepEqual(waits, [undefined, ...Array.from({ length: after - 1 }, () => "1"), "3600", "3600"]);
        web.nowMs += 3_600_000;
        await app.statuses(after);
        const { headers, body } = await app.get();
        assert.deepEqual([headers["retry-after"], body["retry-after"], headers["ratelimit"]], ["3600", 3600, '"login";r=0;t=3600']);
        assert.equal(headers["x-ratelimit-retry-after"], "3600");
      });
    }
  }

  it("sets Retry-After on the rejection that begins it, even when two processes share the count", async (web) => {
    for (const turns of ["ab", "ba", "aab", "abb", "aba", "baab"]) {
      const store = later(web.store);
      const name = `login ${turns}`;
      const limits = Array.from({ length: 2 }, () => ({ ...login, name, ban: { ...ban, after: turns.length }, store }));
      const [a, b] = [await web.start(limits[0] as LimitSetup), await web.start(limits[1] as LimitSetup)];
      const waits: unknown[] = [];
      for (const process of `a${turns}`) waits.push((await (process === "a" ? a : b).get()).headers["retry-after"]);
      assert.deepEqual(waits, [undefined, ...Array.from({ length: turns.length - 1 }, () => "1"), "3600"], turns);
      web.nowMs += 60_000;
    }
  });

  it("does not delay rejections that cannot begin it", async (web) => {
    const sound = later(web.store);
    let counted = 0;
    const consume: typeof sound.consume = (...check) =>
      check[0].name === "login·rejections" && ++counted > 2 ? new Promise(() => undefined) : sound.consume(...check);
    const app = await web.start({ ...login, ban: { ...ban, after: 7 }, store: { ...sound, consume }, timeoutMs: 600_000 });
    // After two answers the count is known, and that no other process adds to it.
    assert.deepEqual(await app.statuses(6), [200, 429, 429, 429, 429, 429]);
    assert.equal(counted, 5);
  });

  it("delays a rejection by at most timeoutMs when the store is slow", async (web) => {
    const sound = later(web.store);
    const consume: typeof sound.consume = (...check) =>
      check[0].name === "login·rejections" ? new Promise(() => undefined) : sound.consume(...check);
    const app = await web.start({ ...login, ban: { ...ban, after: 1 }, store: { ...sound, consume }, timeoutMs: 20 });
    const { status, headers } = await app.get().then(() => app.get());
    assert.deepEqual([status, headers["retry-after"]], [429, "1"]);
  });

  it("waits for a slow store within timeoutMs", async (web) => {
    const sound = later(web.store);
    const consume: typeof sound.consume = async (...check) => {
      if (check[0].name === "login·rejections") await new Promise((resolve) => setTimeout(resolve, 20));
      return sound.consume(...check);
    };
    const app = await web.start({ ...login, ban: { ...ban, after: 1 }, store: { ...sound, consume }, timeoutMs: 60_000 });
    const { headers } = await app.get().then(() => app.get());
    assert.equal(headers["retry-after"], "3600");
  });

  it("that ended starts counting from zero again", async (web) => {
    const app = await web.start({ ...login, ban: { after: 3, within: "1h", for: "1m" } });
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(await app.statuses(3), [200, 429, 429]);
      assert.equal((await app.peek()).retryAfterMs, 1000);
      assert.deepEqual(await app.statuses(4), [429, 429, 429, 429]);
      assert.equal((await app.peek()).retryAfterMs, 60_000);
      web.nowMs += 60_000;
    }
  });

  it("does not begin if the rejections are too far apart", async (web) => {
    const app = await web.start(login);
    for (let i = 0; i < 4; i++) {
      assert.deepEqual(await app.statuses(2), [200, 429]);
      web.nowMs += 31_000;
    }
  });

  it("applies to one key and one rule, and charges no others", async (web) => {
    const rules = [
      { ...login, key: "header:x-user" as const },
      { name: "all", key: "global" as const, policy: fixedWindow({ limit: 100, window: "1h" }) },
    ];
    const app = await web.start({ rules });
    await app.statuses(4, "/", { "x-user": "ann" });
    web.nowMs += 1000;
    assert.equal((await app.get("/", { "x-user": "ann" })).status, 429);
    assert.equal((await app.peek("global", "all")).remaining, 99);
    assert.equal((await app.get("/", { "x-user": "bob" })).status, 200);
    assert.equal((await app.peek("global", "all")).remaining, 98);
  });

  for (const mode of ["enforce", "shadow"] as const) {
    for (const [kind, storeOf] of stores) {
      it(`does not charge the limit of a banned key (mode ${mode}, store answers ${kind})`, async (web) => {
        const wide = { ...login, policy: fixedWindow({ limit: 3, window: "1m" }), ban: { ...ban, after: 1 }, mode };
        const never = { name: "never", match: { path: "/never" }, policy, cost: () => 2 };
        const { onEvent } = web.listen("refunded");
        const app = await web.start({ rules: [wide, never], store: storeOf(web), refundWhen: () => true, onEvent });
        const limiter = createLimiter({ name: "login", policy: wide.policy, store: web.store });
        limiter.consume(self, { cost: 3 });
        await app.get();
        web.nowMs += 60_000;
        // A limiter of the same name on the same store shares the ban.
        for (const banned of [limiter.consume(self), await app.peek(self, "login")]) assert.equal(banned.allowed, false);
        for (const path of ["/", "/never", "/"]) await app.get(path);
        limiter.unblock(self);
        assert.equal(limiter.peek(self).remaining, 3);
        assert.equal(countOf(web, "refunded"), 0);
      });
    }
  }

  it("does not count rejections by other rules", async (web) => {
    const rules = [
      { name: "strict", policy: fixedWindow({ limit: 1, window: "1h" }) },
      { ...login, name: "wide", policy: fixedWindow({ limit: 100, window: "1s" }) },
    ];
    const app = await web.start({ rules });
    assert.deepEqual(await app.statuses(6), [200, 429, 429, 429, 429, 429]);
    assert.equal((await app.peek(self, "wide")).allowed, true);
  });

  it("is visible to peek and lifted by reset", async (web) => {
    const app = await web.start(login);
    await app.statuses(4);
    web.nowMs += 1000;
    const look = await app.peek();
    assert.deepEqual([look.allowed, look.remaining, look.retryAfterMs], [false, 0, 3_599_000]);
    await app.limits[0]?.limiter.reset(self);
    assert.equal((await app.peek()).allowed, true);
    assert.deepEqual(await app.statuses(3), [200, 429, 429]);
  });

  it("of a shadow rule rejects nobody and emits an event; other rules keep counting", async (web) => {
    const { onEvent, heard } = web.listen("banned");
    const all = { name: "all", key: "global" as const, policy: fixedWindow({ limit: 100, window: "1h" }) };
    const app = await web.start({ rules: [all, { ...login, mode: "shadow" }], onEvent });
    assert.deepEqual(await app.statuses(5), [200, 200, 200, 200, 200]);
    const event = await heard;
    assert.equal(event.type === "banned" && event.shadow, true);
    web.nowMs += 1000;
    assert.equal((await app.get()).status, 200);
    assert.equal(web.events.at(-1)?.type, "shadow-limited");
    assert.equal((await app.peek("global", "all")).remaining, 94);
  });

  it("begins once under concurrent requests", async (web) => {
    const { onEvent, heard } = web.listen("banned");
    const { opened, open } = gate();
    const sound = later(web.store);
    let strikes = 0;
    let all = (): void => undefined;
    const counted = new Promise<void>((resolve) => {
      all = resolve;
    });
    const consume: typeof sound.consume = async (...check) => {
      const decision = await sound.consume(...check);
      if (++strikes === 19) all();
      await opened;
      return decision;
    };
    const app = await web.start({ ...login, store: { ...sound, consume }, onEvent, timeoutMs: 60_000 });
    const responses = Promise.all(Array.from({ length: 20 }, () => app.get()));
    await counted;
    open();
    await heard;
    const waits = (await responses).map(({ headers }) => headers["retry-after"]);
    assert.ok(waits.filter((wait) => wait === "3600").length >= 17, waits.join());
    await turn();
    assert.equal(countOf(web, "banned"), 1);
  });

  for (const [kind, storeOf] of stores) {
    it(`does not fail requests when a listener throws (store answers ${kind})`, async (web) => {
      const onEvent = ({ type }: FloodgateEvent): void => {
        if (type === "banned" || type === "store-error") assert.fail("mine");
      };
      const app = await web.start({ ...login, onEvent, store: storeOf(web) });
      assert.deepEqual(await app.statuses(5), [200, 429, 429, 429, 429]);
      web.nowMs += 1000;
      assert.equal((await app.get()).headers["retry-after"], "3599");
      assert.deepEqual(app.errors, []);
    });
  }

  it("does not count rejections that were decided without the store", async (web) => {
    const store = new FaultyStore(web.store);
    const { onEvent, heard } = web.listen("banned");
    const onStoreError = memory(() => web.nowMs);
    const app = await web.start({ ...login, ban: { ...ban, after: 2 }, store, onStoreError, onEvent });
    store.fault = "rejects";
    assert.deepEqual(await app.statuses(2), [200, 429]);
    store.fault = undefined;
    assert.deepEqual(await app.statuses(1), [429]);
    assert.equal((await app.peek()).retryAfterMs, 1000);
    assert.deepEqual(await app.statuses(1), [429]);
    await heard;
    assert.equal((await app.peek()).retryAfterMs, 3_600_000);
  });

  for (const [what, failing] of [
    ["its rejections", "login·rejections"],
    ["the ban itself", "block"],
  ] as const) {
    for (const fallback of ["none", "in memory"] as const) {
      it(`begins with the next rejection if the store failed to count ${what} (fallback: ${fallback})`, async (web) => {
        let away = true;
        const sound = later(web.store);
        const store: Store<"async"> = {
          ...sound,
          consume: (...check) => (away && check[0].name === failing ? Promise.reject(fault) : sound.consume(...check)),
          block: (...ban) => (away && failing === "block" ? Promise.reject(fault) : sound.block(...ban)),
          reset: () => Promise.reject(fault),
        };
        const { onEvent, heard } = web.listen("banned");
        const onStoreError = fallback === "none" ? "allow" : memory(() => web.nowMs);
        const app = await web.start({ ...login, ban: { ...ban, after: 1 }, store, onStoreError, onEvent });
        assert.deepEqual(await app.statuses(3), [200, 429, 429]);
        assert.deepEqual([countOf(web, "banned"), countOf(web, "store-error")], [0, 2]);
        away = false;
        assert.equal((await app.get()).headers["retry-after"], "3600");
        await heard;
        await turn();
        // The count of its rejections could not be reset.
        const errors = web.events.map((event) => (event.type === "store-error" ? event.error : undefined));
        assert.deepEqual(
          errors.filter((error) => error !== undefined),
          [fault, fault, fault],
        );
        assert.equal((await app.get()).headers["retry-after"], "3600");
      });
    }
  }

  it("sets Retry-After on the rejection that begins it, also after the store failed to begin one", async (web) => {
    let away = true;
    const sound = later(web.store);
    const store: Store<"async"> = { ...sound, block: (...ban) => (away ? Promise.reject(fault) : sound.block(...ban)) };
    const app = await web.start({ ...login, store, onEvent: () => undefined });
    await app.statuses(1 + ban.after);
    away = false;
    for (const rejections of [1, ban.after]) {
      const waits: unknown[] = [];
      for (let i = 0; i < rejections; i++) waits.push((await app.get()).headers["retry-after"]);
      assert.deepEqual(waits, [...Array.from({ length: rejections - 1 }, () => "1"), "3600"]);
      web.nowMs += 3_600_000;
      assert.deepEqual(await app.statuses(1), [200]);
    }
  });

  for (const [wrong, message] of [
    [{ after: 0, within: "1m", for: "1h" }, /`after` must be a whole number of at least 1/],
    [{ after: 3, within: "1m" }, /^rateLimit: ban: `for` must be a duration/],
    [{ after: 3, within: "soon", for: "1h" }, /^rateLimit: ban: `within` must be a duration/],
    [{ after: 3, within: "1m", for: "1h", forever: true }, /no option `forever`/],
  ] as const) {
    it(`rejects the option ${JSON.stringify(wrong)}`, async (web) => {
      await assert.rejects(web.start({ policy, ban: wrong as never }), (error: Error) => message.test(error.message));
    });
  }
});
