import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import type { EventEmitter } from "node:events";
import { fixedWindow } from "@floodgate/core";
import type { Handler, LimitSetup } from "./adapter.js";
import { Http2Client, until } from "./clients.js";
import type { AdapterSuite } from "./web.js";
import { later, together, turns } from "./world.js";

const policy = fixedWindow({ limit: 1, window: "1m" });
const wide = fixedWindow({ limit: 100, window: "1m" });

/** What core's options read of a request: its method, path, headers and body. Core's own tests have the cases of each option. */
export function functionCases({ adapter, it }: AdapterSuite): void {
  it("keys read the request: by a header, a function, an async function under a name, and a tuple of method and path", async (web) => {
    for (const limit of [
      { key: "header:x-user" },
      { key: (request) => request.header("x-user") },
      { key: "user", keys: { user: async (request) => request.header("x-user") } },
      { key: (request) => [request.header("x-user") ?? "", request.method, request.path] },
    ] as LimitSetup[]) {
      const app = await web.start({ ...limit, policy });
      web.nowMs += 60_000;
      const statuses = [];
      for (const user of ["ann", "ann", "bob"]) statuses.push((await app.get("/", { "X-User": user })).status);
      assert.deepEqual(statuses, [200, 429, 200], String(limit.key));
    }
  });

  it("keys and costs read the body", async (web) => {
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

  if (adapter.http2 === true) {
    it("a client of HTTP/2 that disconnects before its body has arrived: nothing is charged", async (web) => {
      const app = await web.start({ limits: [{ policy: wide }], http2: true, steps: [{ limit: 0 }, { route: "/", method: "post" }] });
      const client = await Http2Client.connect(app.server);
      // The body is longer than the window of HTTP/2, so most of it never leaves the client.
      client.ask({ headers: { "content-type": "application/json" }, body: JSON.stringify({ text: "x".repeat(90_000) }) });
      await until(() => client.accepted.bytesRead > 0, "the request");
      await client.leave();
      await turns(5);
      assert.equal((await app.peek()).remaining, 100);
    });
  }

  it("keys, costs, onLimited, onEvent and handlers run in the async context of their request, also if one answer decides several requests", async (web) => {
    const context = new AsyncLocalStorage<string>();
    const seen = new Map<string, number>();
    const note = (what: string, id?: string): void => {
      const here = context.getStore();
      const name = here !== undefined && here === (id ?? here) ? what : `${what} of ${id} in ${here}`;
      seen.set(name, (seen.get(name) ?? 0) + 1);
    };
    const app = await web.start({
      limits: [
        {
          policy: fixedWindow({ limit: 3, window: "1m" }),
          store: together(web.store, 3),
          key: (request) => {
            note("key", request.header("x-id"));
            return "key";
          },
          cost: async (request) => {
            note("cost", request.header("x-id"));
            return 1;
          },
          onLimited: (request) => {
            note("onLimited", request.header("x-id"));
            return {};
          },
          onEvent: ({ type }) => note(type),
        },
      ],
      handler: (request) => {
        note("handler", request.header("x-id"));
        return {};
      },
    });
    const server: EventEmitter = app.server;
    const emit = server.emit.bind(server);
    server.emit = (type, ...args) =>
      type === "request" ? context.run(args[0].headers["x-id"], () => emit(type, ...args)) : emit(type, ...args);
    await Promise.all(["a", "b", "c", "d", "e", "f"].map((id) => app.get("/", { "x-id": id })));
    assert.deepEqual(Object.fromEntries(seen), { key: 6, cost: 6, allowed: 3, limited: 3, handler: 3, onLimited: 3, request: 6 });
  });

  it("a rule matches by method, path and header", async (web) => {
    const match = { method: ["POST", "GET"], path: "/posts/:id", header: { "X-Version": "2" } };
    const app = await web.start({ rules: [{ name: "rule", policy: wide, match }] });
    const version = { "x-version": "2" };
    const limited = async (response: ReturnType<typeof app.get>) => (await response).headers["ratelimit"] !== undefined;
    for (const method of ["get", "head", "post"] as const) assert.equal(await limited(app.send(method, "/posts/1?x=/", version)), true);
    for (const other of [app.send("options", "/posts/1", version), app.get("/posts", version), app.get("/posts/1")]) {
      assert.equal(await limited(other), false);
    }
  });

  if (adapter.http2 === true)
    it("a rule and a key read the header host over HTTP/2, whose clients send :authority in its place", async (web) => {
      const rules = [
        { name: "api", policy: fixedWindow({ limit: 1, window: "1m" }), match: { header: { host: "api.test" } }, key: "header:host" },
      ];
      const app = await web.start({ limits: [{ rules }], http2: true });
      const client = await Http2Client.connect(app.server);
      for (const name of ["api.test", "api.test", "www.test"]) {
        client.ask({ headers: { ":authority": name } });
        await until(() => client.statuses.length === client.streams.length, "the answer");
      }
      assert.deepEqual([client.statuses, (await app.peek("api.test")).remaining, app.errors], [[200, 429, 200], 0, []]);
      await client.leave();
    });

  it("header names such as constructor or __proto__ are read like any other", async (web) => {
    const rules = [
      { name: "constructor", policy: wide, match: { header: { constructor: true } } },
      { name: "proto", policy: wide, match: { header: JSON.parse('{ "__proto__": true }') } },
      { name: "key", policy: wide, key: "header:constructor", onMissingKey: "skip" },
    ] as const;
    const app = await web.start({ rules });
    assert.equal((await app.get()).headers["ratelimit"], undefined);
    assert.equal((await app.get("/", { constructor: "a" })).headers["ratelimit"], '"constructor";r=99;t=45, "key";r=99;t=45');
  });
}

/** `decisionName`: where handlers find the decision. */
export function decisionCases({ adapter, it }: AdapterSuite): void {
  const limit = (name: string, decisionName: string): LimitSetup => ({ name, policy, decisionName });

  /** Responds with the name of the limit whose decision the handler finds under each name. */
  const found: Handler = (request, decision) => ({
    body: { rateLimit: decision?.name, ...Object.fromEntries(["quota", "burst"].map((name) => [name, request.decision(name)?.name])) },
  });

  it("decisionName replaces rateLimit, and separates the decisions of several middlewares, in any order", async (web) => {
    const alone = await web.start({ limits: [limit("api", "quota")], handler: found });
    assert.deepEqual((await alone.get()).body, { quota: "api" });
    for (const order of [
      ["rateLimit", "quota", "burst"],
      ["burst", "quota", "rateLimit"],
    ]) {
      const app = await web.start({ limits: order.map((name) => limit(`of ${name}`, name)), handler: found });
      assert.deepEqual((await app.get()).body, { rateLimit: "of rateLimit", quota: "of quota", burst: "of burst" });
      web.nowMs += 60_000;
    }
  });

  const ofRequests = ["url", "method", "headers", "body", "params", "query", "socket"];
  if (adapter.marksRequests === true) {
    it("a decisionName that requests have already is an error when the options are given", async (web) => {
      for (const name of ofRequests) await assert.rejects(web.start(limit("api", name)), { code: "FLOODGATE_CONFLICTING_OPTIONS" }, name);
    });
  } else {
    it("a decisionName may be that of something that requests have", async (web) => {
      const handler: Handler = (request) => ({ body: ofRequests.map((name) => request.decision(name)?.name) });
      const app = await web.start({ limits: ofRequests.map((name) => limit(name, name)), handler });
      assert.deepEqual((await app.get()).body, ofRequests);
    });
  }

  it("the last decision that applied is found when middlewares share a name, and none if no limit applied", async (web) => {
    const limits = [limit("first", "quota"), limit("second", "quota"), { ...limit("third", "quota"), skip: () => true }];
    const app = await web.start({ limits, handler: found });
    assert.deepEqual((await app.get()).body, { quota: "second" });
    const free = await web.start({ limits: [{ ...limit("api", "quota"), cost: 0 }], handler: found });
    assert.deepEqual((await free.get()).body, {});
  });

  it("an asynchronous decision is found too, also in onLimited", async (web) => {
    const onLimited: Handler = (request) => ({ body: { allowed: request.decision("quota")?.allowed } });
    const app = await web.start({ limits: [{ ...limit("api", "quota"), store: later(web.store), onLimited }], handler: found });
    assert.deepEqual((await app.get()).body, { quota: "api" });
    assert.deepEqual((await app.get()).body, { allowed: false });
  });
}
