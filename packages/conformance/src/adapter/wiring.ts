import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { fixedWindow, type HeadersOption, type RuleSource } from "@floodgate/core";
import type { PlainRule, RuleUser } from "@floodgate/core/rules";
import { FaultyStore } from "../faulty-store.js";
import type { LimitSetup } from "./adapter.js";
import type { AdapterSuite } from "./web.js";
import { items, later, self } from "./world.js";

/** What core decides, as one request of the framework meets it. Core's own tests have the cases of each subject. */
export function wiringCases({ describe, it }: AdapterSuite): void {
  const policy = fixedWindow({ limit: 1, window: "1m" });
  const wide = fixedWindow({ limit: 100, window: "1m" });

  describe("core's decisions", () => {
    for (const [kind, limit] of [
      ["header:x-user", { key: "header:x-user" }],
      ["a function", { key: (request) => request.header("x-user") }],
      ["an async function under a name", { key: "user", keys: { user: async (request) => request.header("x-user") } }],
      ["a tuple with the method and the path", { key: (request) => [request.header("x-user") ?? "", request.method, request.path] }],
    ] as [string, LimitSetup][]) {
      it(`count by the key of the request: ${kind}`, async (web) => {
        const app = await web.start({ ...limit, policy });
        for (const [user, status] of [
          ["ann", 200],
          ["ann", 429],
          ["bob", 200],
        ] as const) {
          assert.equal((await app.get("/", { "X-User": user })).status, status, user);
        }
      });
    }

    it("count by a key and a cost from the body", async (web) => {
      const field = (request: { body: unknown }) => request.body as { user: string; items: number[] };
      const app = await web.start({
        policy: fixedWindow({ limit: 3, window: "1m" }),
        key: (request) => field(request).user,
        cost: (request) => field(request).items.length,
      });
      const post = async (user: unknown, items: number[]) => (await app.post("/", { user, items })).status;
      assert.deepEqual([await post("ann", [1, 2]), await post("ann", [1, 2]), await post("bob", [1, 2])], [200, 429, 200]);
      assert.equal(await post({}, [1]), 500);
      assert.deepEqual(app.codes, ["FLOODGATE_INVALID_KEY"]);
    });

    it("store a secret header as its digest", async (web) => {
      const { onEvent } = web.listen("allowed");
      const app = await web.start({ policy, key: "header:authorization", onEvent });
      assert.deepEqual(await app.statuses(2, "/", { Authorization: "Bearer 1" }), [200, 429]);
      const digest = createHash("sha256").update("floodgate:secret-key:Bearer 1").digest("hex");
      assert.deepEqual(
        web.events.map((event) => "key" in event && event.key),
        [`secret:${digest}`, `secret:${digest}`],
      );
    });

    for (const [onMissingKey, statuses] of [
      ["error", [500, 500]],
      ["skip", [200, 200]],
      ["reject", [429, 429]],
      ["ip", [200, 429]],
    ] as const) {
      it(`follow onMissingKey: "${onMissingKey}"`, async (web) => {
        const app = await web.start({ policy, key: "header:x-user", onMissingKey });
        assert.deepEqual(await app.statuses(2), statuses);
        assert.deepEqual(app.codes, onMissingKey === "error" ? ["FLOODGATE_MISSING_KEY", "FLOODGATE_MISSING_KEY"] : []);
      });
    }

    it("follow a rule's method, path and header", async (web) => {
      const match = { method: ["POST", "GET"], path: "/posts/:id", header: { "X-Version": "2" } };
      const app = await web.start({ rules: [{ name: "rule", policy: wide, match }] });
      const version = { "x-version": "2" };
      const limited = async (response: ReturnType<typeof app.get>) => (await response).headers["ratelimit"] !== undefined;
      for (const method of ["get", "head", "post"] as const) assert.equal(await limited(app.send(method, "/posts/1?x=/", version)), true);
      for (const other of [app.send("options", "/posts/1", version), app.get("/posts", version), app.get("/posts/1")]) {
        assert.equal(await limited(other), false);
      }
    });

    it("read header names such as constructor or __proto__ like any other", async (web) => {
      const rules = [
        { name: "constructor", policy: wide, match: { header: { constructor: true } } },
        { name: "proto", policy: wide, match: { header: JSON.parse('{ "__proto__": true }') } },
        { name: "key", policy: wide, key: "header:constructor", onMissingKey: "skip" },
      ] as const;
      const app = await web.start({ rules });
      assert.equal((await app.get()).headers["ratelimit"], undefined);
      assert.equal((await app.get("/", { constructor: "a" })).headers["ratelimit"], '"constructor";r=99;t=45, "key";r=99;t=45');
    });

    it("follow all functions of the app by promise, with an asynchronous store", async (web) => {
      const app = await web.start({
        name: "all",
        store: later(web.store),
        skip: async (request) => request.path.startsWith("/health"),
        key: async (request, { ip }) => [ip, request.header("x-user") ?? "nobody"],
        clientIp: async () => "192.0.2.1",
        policy: async () => fixedWindow({ limit: 10, window: "1m" }),
        cost: async () => 5,
        onLimited: async () => ({ body: "later" }),
      });
      assert.deepEqual(await app.statuses(3), [200, 200, 429]);
      assert.equal((await app.get()).body, "later");
      assert.equal((await app.get("/", { "x-user": "ann" })).status, 200);
      await app.limits[0]?.limiter.reset(["192.0.2.1", "nobody"]);
      assert.equal((await app.get()).status, 200);
      assert.deepEqual(app.errors, []);
    });

    it("exceed no limit under concurrent requests, with an asynchronous store", async (web) => {
      const app = await web.start({
        policy: fixedWindow({ limit: 10, window: "1m" }),
        store: later(web.store),
        key: async () => "everyone",
      });
      const responses = await Promise.all(Array.from({ length: 25 }, () => app.get()));
      assert.equal(responses.filter(({ status }) => status === 200).length, 10);
    });

    it("charge all of several rules, or none, and the 429 names those that reject", async (web) => {
      const rules = [
        { name: "wide", policy: wide },
        { name: "tight", policy },
        { name: "shadow", policy, mode: "shadow" as const },
        { name: "free", policy, cost: 0 },
        { name: "exempt", policy, exempt: { ips: ["127.0.0.0/8"] } },
      ];
      const app = await web.start({ rules, store: later(web.store) });
      const allowed = await app.get();
      assert.equal(allowed.body.decision.name, "tight");
      assert.deepEqual(items(allowed, "ratelimit"), { wide: { r: 99, t: 45 }, tight: { r: 0, t: 45 } });
      const limited = await app.get();
      assert.deepEqual([limited.status, limited.headers["retry-after"], limited.body["violated-policies"]], [429, "45", ["tight"]]);
      assert.equal((await app.peek(self, "wide")).remaining, 99);
    });

    it("follow the plan of a request", async (web) => {
      const app = await web.start({ policy, plans: { paid: { limit: 3 } }, plan: (request) => request.header("x-plan") });
      assert.deepEqual([...(await app.statuses(2)), ...(await app.statuses(3, "/", { "x-plan": "paid" }))], [200, 429, 200, 200, 429]);
    });

    it("ban and block a key, with Retry-After", async (web) => {
      const { onEvent, heard } = web.listen("banned");
      const app = await web.start({ policy, ban: { after: 2, within: "1m", for: "1h" }, onEvent });
      assert.deepEqual(await app.statuses(3), [200, 429, 429]);
      await heard;
      assert.equal((await app.get()).headers["retry-after"], "3600");
      await app.limits[0]?.limiter.unblock(self);
      await app.limits[0]?.limiter.block(self, "90s");
      web.nowMs += 1000;
      assert.equal((await app.get()).headers["retry-after"], "89");
    });

    it("reject everything under a limit of 0, without Retry-After", async (web) => {
      const app = await web.start({ policy: () => fixedWindow({ limit: 0, window: "1m" }) });
      const { status, headers } = await app.get();
      assert.deepEqual([status, headers["retry-after"], headers["ratelimit"]], [429, undefined, '"default";r=0']);
    });

    for (const [headers, names] of [
      ["standard", ["ratelimit", "ratelimit-policy"]],
      ["draft-7", ["ratelimit", "ratelimit-policy"]],
      ["draft-6", ["ratelimit-limit", "ratelimit-policy", "ratelimit-remaining", "ratelimit-reset"]],
      ["legacy", ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]],
      [false, []],
    ] as [HeadersOption, string[]][]) {
      it(`headers: ${JSON.stringify(headers)} are sent with allowed and limited requests`, async (web) => {
        const app = await web.start({ policy, headers });
        for (const status of [200, 429]) {
          const response = await app.get();
          const present = Object.keys(response.headers).filter((name) => /ratelimit/.test(name) && name !== "x-ratelimit-retry-after");
          assert.deepEqual([response.status, present.sort()], [status, names]);
          assert.equal(response.headers["retry-after"], status === 200 ? undefined : "45");
        }
      });
    }

    it("follow onStoreError when the store fails: degraded by default, a 503 with deny", async (web) => {
      const { onEvent } = web.listen("degraded");
      const store = new FaultyStore(web.store);
      store.fault = "rejects";
      const passing = await web.start({ name: "passing", policy, store, onEvent });
      const { status, headers, body } = await passing.get();
      assert.deepEqual([status, headers["ratelimit"], body.decision.degraded], [200, undefined, true]);
      const denying = await web.start({ name: "denying", policy, store, onEvent, onStoreError: "deny" });
      const denied = await denying.get();
      assert.deepEqual([denied.status, denied.headers["retry-after"], denied.headers["cache-control"]], [503, "1", "no-store"]);
      assert.deepEqual([...passing.errors, ...denying.errors], []);
    });

    it("settle the real cost by the status of the response", async (web) => {
      const { onEvent, heard } = web.listen("settled");
      const app = await web.start({
        limits: [{ policy: wide, cost: 10, settle: (_, response) => (response?.status === 201 ? 60 : 0), onEvent }],
        handler: () => ({ status: 201 }),
      });
      assert.equal((await app.get()).status, 201);
      await heard;
      assert.equal((await app.peek()).remaining, 40);
    });

    it("follow live rules from the next request on", async (web) => {
      const ruleOf = (name: string): PlainRule => ({ name, policy: { algorithm: "fixed-window", limit: 5, window: "1m" } });
      const users: RuleUser[] = [];
      const source: RuleSource = {
        current: { rules: [ruleOf("one")] },
        subscribe: (user) => {
          users.push(user);
          return () => undefined;
        },
      };
      const app = await web.start({ rules: source });
      assert.equal((await app.get()).headers["ratelimit"], '"one";r=4;t=45');
      for (const user of users) user.prepare({ rules: [ruleOf("one"), ruleOf("two")] })();
      assert.equal((await app.get()).headers["ratelimit"], '"one";r=3;t=45, "two";r=4;t=45');
      assert.deepEqual([...(app.limits[0]?.limiters.keys() ?? [])], ["one", "two"]);
    });

    it("of two middlewares that count one request twice cause a warning", async (web) => {
      const { onEvent } = web.listen("warning");
      const app = await web.start({ limits: [1, 2].map(() => ({ name: "api", policy: wide, onEvent })) });
      await app.statuses(5);
      assert.deepEqual(
        web.events.flatMap((event) => (event.type === "warning" ? [event.code] : [])),
        ["FLOODGATE_COUNTED_TWICE"],
      );
    });
  });
}
