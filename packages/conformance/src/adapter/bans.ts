import assert from "node:assert/strict";
import { type FloodgateEvent, fixedWindow } from "@floodgate/core";
import { items } from "./headers.js";
import { type AdapterSuite, later, self } from "./web.js";

/** Keys that are turned away for a while. */
export function banCases({ describe, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 1, window: "1s" });
  const ban = { after: 3, within: "1m", for: "1h" } as const;
  const login = { name: "login", policy, ban };

  describe("a ban", () => {
    for (const kind of ["at once", "by promise"] as const) {
      it(`begins with the last of so many rejections within the time, and lasts as long as it says (a store that answers ${kind})`, async (web) => {
        const { onEvent, heard } = web.listen("banned");
        const app = await web.start({ ...login, onEvent, ...(kind === "at once" ? {} : { store: later(web.store) }) });
        assert.deepEqual(await app.statuses(4), [200, 429, 429, 429]);
        assert.deepEqual(await heard, { type: "banned", name: "login", key: self, forMs: 3_600_000, shadow: false });
        // The limit itself would let it pass again.
        web.nowMs += 1000;
        const banned = await app.get();
        assert.equal(banned.status, 429);
        assert.equal(banned.headers["retry-after"], "3599");
        assert.deepEqual(items(banned, "ratelimit"), { login: { r: 0, t: 3599 } });
        assert.deepEqual(banned.body["violated-policies"], ["login"]);
        // What it asks for meanwhile makes the ban no longer.
        web.nowMs += 3_598_000;
        assert.equal((await app.get()).headers["retry-after"], "1");
        web.nowMs += 1000;
        assert.deepEqual(await app.statuses(3), [200, 429, 429]);
      });
    }

    it("does not begin where the rejections lie further apart", async (web) => {
      const app = await web.start(login);
      for (let i = 0; i < 4; i++) {
        assert.deepEqual(await app.statuses(2), [200, 429]);
        web.nowMs += 31_000;
      }
    });

    it("is of one key and one rule, and takes nothing from the others", async (web) => {
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

    it("counts no rejection that another rule has said", async (web) => {
      const rules = [
        { name: "strict", policy: fixedWindow({ limit: 1, window: "1h" }) },
        { ...login, name: "wide", policy: fixedWindow({ limit: 100, window: "1s" }) },
      ];
      const app = await web.start({ rules });
      assert.deepEqual(await app.statuses(6), [200, 429, 429, 429, 429, 429]);
      assert.equal((await app.peek(self, "wide")).allowed, true);
    });

    it("is shown by a look and lifted by a reset", async (web) => {
      const app = await web.start(login);
      await app.statuses(4);
      web.nowMs += 1000;
      const look = await app.peek();
      assert.deepEqual([look.allowed, look.remaining, look.retryAfterMs], [false, 0, 3_599_000]);
      await app.limits[0]?.limiter.reset(self);
      assert.equal((await app.peek()).allowed, true);
      assert.deepEqual(await app.statuses(3), [200, 429, 429]);
    });

    it("of a rule that is only watched turns nobody away, and says so", async (web) => {
      const { onEvent, heard } = web.listen("banned");
      const app = await web.start({ ...login, mode: "shadow", onEvent });
      assert.deepEqual(await app.statuses(5), [200, 200, 200, 200, 200]);
      const event = await heard;
      assert.equal(event.type === "banned" && event.shadow, true);
      web.nowMs += 1000;
      assert.equal((await app.get()).status, 200);
      assert.equal(web.events.at(-1)?.type, "shadow-limited");
    });

    it("counts requests at the same moment one by one: it begins once", async (web) => {
      const { onEvent } = web.listen("banned");
      const app = await web.start({ ...login, store: later(web.store), onEvent });
      await Promise.all(Array.from({ length: 20 }, () => app.get()));
      assert.equal(web.events.filter(({ type }) => type === "banned").length, 1);
    });

    for (const kind of ["at once", "by promise"] as const) {
      it(`a listener that throws at it harms no request (a store that answers ${kind})`, async (web) => {
        const onEvent = ({ type }: FloodgateEvent): void => {
          if (type === "banned" || type === "store-error") assert.fail("mine");
        };
        const app = await web.start({ ...login, onEvent, ...(kind === "at once" ? {} : { store: later(web.store) }) });
        assert.deepEqual(await app.statuses(5), [200, 429, 429, 429, 429]);
        web.nowMs += 1000;
        assert.equal((await app.get()).headers["retry-after"], "3599");
        assert.deepEqual(app.errors, []);
      });
    }

    for (const [wrong, message] of [
      [{ after: 0, within: "1m", for: "1h" }, /`after` must be a whole number of at least 1/],
      [{ after: 3, within: "1m" }, /`for` must be a duration/],
      [{ after: 3, within: "soon", for: "1h" }, /`within` must be a duration/],
      [{ after: 3, within: "1m", for: "1h", forever: true }, /no option `forever`/],
    ] as const) {
      it(`of ${JSON.stringify(wrong)} is refused`, async (web) => {
        await assert.rejects(web.start({ policy, ban: wrong as never }), (error: Error) => message.test(error.message));
      });
    }
  });
}
