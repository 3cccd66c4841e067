import assert from "node:assert/strict";
import type { OnMissingKey } from "../../src/adapter.js";
import { type Decision, fixedWindow, type Limiter } from "../../src/index.js";
import { describe, it, type LimitSetup, type RequestView, self } from "./app.js";

const policy = fixedWindow({ limit: 1, window: "1m" });
const user = (request: RequestView): string | undefined => request.header("x-user");
const field = (request: RequestView): never => (request.body as { key: never }).key;

/** Keys that are missing on a request without the header `x-user`. */
const lacking: [string, LimitSetup][] = [
  ["ip", { key: "ip", clientIp: () => undefined }],
  ["header:x-user", { key: "header:x-user" }],
  ["a key of the app's own", { key: "user", keys: { user } }],
  ["a key of the app's own, by promise", { key: "user", keys: { user: async (request) => user(request) } }],
  ["a function", { key: user }],
  ["an async function", { key: async (request) => user(request) }],
  ["a tuple", { key: ["global", "header:x-user"] }],
];

/** `key`: what a limit counts by. */
describe("keys", () => {
  it("ip counts by the client's address, and is the default", async (web) => {
    const app = await web.start({ policy });
    await app.get();
    assert.equal((await app.peek()).remaining, 0);
  });

  it("limiters accept an address in any notation", async (web) => {
    for (const [client, names] of [
      ["192.0.2.7", ["192.0.2.7", "::ffff:192.0.2.7"]],
      ["2001:db8::1", ["2001:db8::1", "2001:DB8:0:0::1", "2001:db8::/56"]],
    ] as const) {
      for (const key of ["ip", ["ip", "global"]] as const) {
        const app = await web.start({ policy, key, clientIp: () => client });
        for (const name of names) {
          assert.deepEqual(await app.statuses(2), [200, 429], name);
          await app.limits[0]?.limiter.reset(key === "ip" ? name : [name, "global"]);
        }
      }
    }
  });

  it("global counts all requests together", async (web) => {
    let client = 0;
    const app = await web.start({ policy, key: "global", clientIp: () => `192.0.2.${++client}` });
    assert.deepEqual(await app.statuses(2), [200, 429]);
  });

  it("header:<name> counts by a header's value; the case of its name does not matter", async (web) => {
    const app = await web.start({ policy, key: "header:X-Api-Key" });
    for (const [key, status] of [
      ["a", 200],
      ["a", 429],
      ["b", 200],
      ["A", 200],
    ] as const) {
      assert.equal((await app.get("/", { "X-API-KEY": key })).status, status, key);
    }
  });

  it("an empty header counts as a missing key", async (web) => {
    const app = await web.start({ policy, key: "header:x-api-key", onMissingKey: "reject" });
    assert.equal((await app.get("/", { "x-api-key": "" })).status, 429);
  });

  for (const [kind, key] of [
    ["at once", user],
    ["by promise", async (request: RequestView) => user(request)],
  ] as const) {
    it(`a key defined in keys is what its function returns ${kind}`, async (web) => {
      const app = await web.start({ policy, key: "user", keys: { user: key } });
      for (const [name, status] of [
        ["ann", 200],
        ["ann", 429],
        ["bob", 200],
      ] as const) {
        assert.equal((await app.get("/", { "x-user": name })).status, status, name);
      }
    });
  }

  it("a key that equals an address does not share the count of a keyless client with that address", async (web) => {
    const app = await web.start({ policy, key: "header:x-api-key", onMissingKey: "ip" });
    assert.deepEqual(await app.statuses(2, "/", { "x-api-key": self }), [200, 429]);
    assert.deepEqual(await app.statuses(2), [200, 429]);
    await app.limits[0]?.limiter.reset({ missingKeyIp: self });
    assert.deepEqual(await app.statuses(1), [200]);
  });

  it("onMissingKey beside rules holds for each rule that can have it", async (web) => {
    const rules = [
      { name: "ip", key: "ip", policy },
      { name: "key", key: "header:x-api-key", policy },
    ] as const;
    const app = await web.start({ rules, onMissingKey: "ip" });
    assert.match((await app.get()).headers["ratelimit"] as string, /^"ip";r=0;t=\d+, "key";r=0;/);
    const own = [{ ...rules[0], onMissingKey: "ip" as const }];
    await assert.rejects(web.start({ rules: own }), { code: "FLOODGATE_CONFLICTING_OPTIONS", at: ["rules", 0, "onMissingKey"] });
  });

  it("no key made from client input reaches the count of a keyless client", async (web) => {
    const keys = { user, list: (request: RequestView) => request.header("x-list")?.split(",") };
    const shapes: LimitSetup[] = [
      { key: ["header:x-tenant", "header:x-user"] },
      { key: ["header:x-user"] },
      { key: "header:x-user" },
      { key: "list" },
      { key: (request) => [request.header("x-tenant") ?? "", request.header("x-user") ?? ""] },
      { key: (request) => keys.list(request) },
    ];
    const sent = [
      { "x-tenant": "ip", "x-user": self, "x-list": `ip,${self}` },
      { "x-tenant": "missing-key-ip:", "x-user": self, "x-list": `missing-key-ip:,${self}` },
      { "x-tenant": "ip", "x-user": `missing-key-ip:${self}`, "x-list": `missing-key-ip:${self}` },
      { "x-tenant": "\\", "x-user": `\\missing-key-ip:${self}`, "x-list": `\\missing-key-ip:${self}` },
    ];
    for (const [i, shape] of shapes.entries()) {
      const app = await web.start({ name: `shape-${i}`, keys, policy, ...shape, onMissingKey: "ip" });
      for (const headers of sent) await app.get("/", headers);
      // This key function always returns a tuple, so no request is keyless.
      const keyless = i === 4 ? await app.limits[0]?.limiter.peek({ missingKeyIp: self }) : undefined;
      if (keyless === undefined) assert.deepEqual(await app.statuses(2), [200, 429], `shape ${i}`);
      else assert.equal(keyless.remaining, 1);
    }
  });

  it("a keyless client is shown as missing-key-ip:<address>, and limiters address it by missingKeyIp", async (web) => {
    const { onEvent } = web.listen("allowed");
    const clientIp = (request: RequestView): string | undefined => request.header("x-ip");
    let decided: Decision | undefined;
    const app = await web.start({
      limits: [{ policy, key: "header:x-user", onMissingKey: "ip", clientIp, ipv6Prefix: 64, onEvent }],
      handler: (_, decision) => {
        decided = decision;
        return { body: {} };
      },
    });
    const limiter = app.limits[0]?.limiter as Limiter;
    for (const [ip, named, shown] of [
      ["203.0.113.9", "::ffff:203.0.113.9", "missing-key-ip:203.0.113.9"],
      ["2001:db8:0:1::5", "2001:DB8:0:1:0::7", "missing-key-ip:2001:db8:0:1::/64"],
    ] as const) {
      web.events.length = 0;
      assert.deepEqual(await app.statuses(2, "/", { "x-ip": ip }), [200, 429]);
      assert.deepEqual(
        web.events.map((event) => "key" in event && event.key),
        [shown, shown],
      );
      const key = { missingKeyIp: named };
      assert.equal((await limiter.peek(key)).remaining, 0);
      await limiter.reset(key);
      assert.deepEqual(await app.statuses(2, "/", { "x-ip": ip }), [200, 429]);
      assert.equal(await limiter.settle(key, decided as Decision, 0), -1);
      assert.equal((await app.get("/", { "x-ip": ip })).status, 200);
      await limiter.reset(shown);
      assert.equal((await app.get("/", { "x-ip": ip })).status, 429);
      await limiter.reset({ missingKeyIp: shown.slice("missing-key-ip:".length) });
      assert.equal((await app.get("/", { "x-ip": ip })).status, 200);
      assert.equal(await limiter.refund(key, decided as Decision), 1);
      await limiter.block(key, "1h");
      assert.equal((await app.get("/", { "x-ip": ip })).headers["retry-after"], "3600");
      await limiter.unblock(key);
      assert.equal((await app.get("/", { "x-ip": ip })).status, 200);
      assert.throws(() => limiter.consume(key as never), { code: "FLOODGATE_INVALID_KEY" });
    }
    assert.throws(() => limiter.reset({ missingKeyIp: "2001:db8::/56" }), { code: "FLOODGATE_INVALID_KEY" });
  });

  it('onMissingKey: "reject" rejects and emits missing-key', async (web) => {
    const { onEvent } = web.listen("missing-key");
    const app = await web.start({ policy, key: "header:x-api-key", onMissingKey: "reject", onEvent });
    assert.equal((await app.get()).status, 429);
    assert.deepEqual(web.events, [{ type: "missing-key", name: "default", rejected: true }]);
  });

  it("a rule without a key uses the middleware's key", async (web) => {
    const app = await web.start({ key: "header:x-api-key", rules: [{ name: "one", policy, key: undefined as never }] });
    assert.deepEqual(await app.statuses(2, "/", { "x-api-key": "a" }), [200, 429]);
    assert.equal((await app.get("/", { "x-api-key": "b" })).status, 200);
  });

  it("rules name their keys", async (web) => {
    const rules = [
      { name: "users", key: "user", policy },
      { name: "all", key: "global", policy: fixedWindow({ limit: 2, window: "1m" }) },
    ];
    const app = await web.start({ rules, keys: { user } });
    for (const [name, status] of [
      ["ann", 200],
      ["ann", 429],
      ["bob", 200],
      ["cy", 429],
    ] as const) {
      assert.equal((await app.get("/", { "x-user": name })).status, status, name);
    }
  });

  it("a list of names is one key made of all parts", async (web) => {
    const app = await web.start({ policy, key: ["header:x-a", "header:x-b"] });
    for (const [a, b, status] of [
      ["1", "2", 200],
      ["1", "2", 429],
      ["2", "1", 200],
      ["1,2", "", 200],
      ["1", "", 429],
      ["1,", "2", 200],
      ["1", ",2", 200],
    ] as const) {
      assert.equal((await app.get("/", { "x-a": a, "x-b": b })).status, status, `${a} ${b}`);
    }
  });

  it("a key function receives the normalised address and the route", async (web) => {
    const seen: string[] = [];
    const app = await web.start({
      limits: [
        {
          policy,
          clientIp: () => "::FFFF:192.0.2.1",
          key: (request, { ip, route }) => {
            seen.push(ip, route, request.method, request.path.split("?")[0] as string);
            return [ip, route];
          },
        },
      ],
      steps: [{ router: "/api", steps: [{ route: "/users/:id", limits: [0] }] }],
    });
    assert.equal((await app.get("/api/users/7?x")).status, 200);
    assert.equal(seen[0], "192.0.2.1");
    assert.match(seen[1] ?? "", /\/users\/:id$/);
    assert.deepEqual(seen.slice(2), ["GET", "/api/users/7"]);
    assert.equal((await app.get("/api/users/8")).status, 429);
  });

  it("a key function receives an address that clientIp promised", async (web) => {
    const app = await web.start({ policy, clientIp: async (request) => request.header("x-ip"), key: (_, { ip }) => [ip, "login"] });
    for (const [ip, status] of [
      ["192.0.2.1", 200],
      ["192.0.2.1", 429],
      ["192.0.2.2", 200],
    ] as const) {
      assert.equal((await app.get("/", { "x-ip": ip })).status, status, ip);
    }
  });

  it("a number, a bigint and a string with the same text are one key; a tuple of it is another", async (web) => {
    const keys = [42, 42n, "42", ["42"], [4, 2], true, "true"];
    let next = 0;
    const app = await web.start({ policy, key: () => keys[next++] });
    assert.deepEqual(await app.statuses(keys.length), [200, 429, 429, 200, 200, 200, 429]);
  });

  for (const [kind, limit] of lacking) {
    for (const onMissingKey of ["error", "skip", "reject", "ip"] satisfies OnMissingKey[]) {
      if (kind === "ip" && onMissingKey === "ip") continue;
      it(`onMissingKey: "${onMissingKey}" applies to ${kind}`, async (web) => {
        const app = await web.start({ name: "api", policy, ...limit, onMissingKey });
        if (kind !== "ip") {
          const ann = { "x-user": "ann" };
          assert.deepEqual(await app.statuses(2, "/", ann), [200, 429]);
        }
        const responses = [await app.get(), await app.get()];
        const statuses = { error: [500, 500], skip: [200, 200], reject: [429, 429], ip: [200, 429] }[onMissingKey];
        assert.deepEqual(
          responses.map(({ status }) => status),
          statuses,
        );
        const code = kind === "ip" ? "FLOODGATE_NO_CLIENT_IP" : "FLOODGATE_MISSING_KEY";
        assert.deepEqual(app.codes, onMissingKey === "error" ? [code, code] : []);
        if (onMissingKey === "reject") {
          assert.deepEqual(responses[0]?.body["violated-policies"], ["api"]);
          assert.equal(responses[0]?.headers["retry-after"], undefined);
          assert.equal(responses[0]?.headers["cache-control"], "no-store");
        }
      });
    }
  }

  it("a rule without a key for the request is skipped alone, or rejects and charges nothing", async (web) => {
    const all = { name: "all", key: "global", policy };
    const skips = await web.start({ rules: [all, { name: "a", key: "header:x-user", policy, onMissingKey: "skip" }] });
    assert.deepEqual(await skips.statuses(2), [200, 429]);
    await skips.limits[0]?.limiter.reset("global");
    const rejects = await web.start({ rules: [all, { name: "b", key: "header:x-user", policy, onMissingKey: "reject" }] });
    assert.deepEqual((await rejects.get()).body["violated-policies"], ["b"]);
    assert.equal((await rejects.peek("global")).remaining, 1);
  });

  it("a shadow rule never rejects because of a missing key", async (web) => {
    const app = await web.start({ policy, key: "header:x-user", onMissingKey: "reject", mode: "shadow" });
    assert.deepEqual(await app.statuses(2), [200, 200]);
  });

  for (const body of [
    '{"key":{}}',
    '{"key":[]}',
    '{"key":[[]]}',
    '{"key":[[["a"]]]}',
    '{"key":[null]}',
    '{"key":null}',
    '{"key":["a",{"b":1}]}',
    '{"key":1e999}',
  ]) {
    it(`the invalid key in ${body} is an error of that request`, async (web) => {
      const app = await web.start({ policy, key: field });
      assert.equal((await app.post("/", body)).status, 500);
      assert.deepEqual(app.codes, ["FLOODGATE_INVALID_KEY"]);
    });
  }

  for (const [kind, key] of [
    ["NaN", Number.NaN],
    ["a symbol", Symbol("key")],
    ["a function", () => "key"],
    ["a date", new Date(0)],
  ] as const) {
    it(`${kind} as a key, or a promise of it, is an error of that request`, async (web) => {
      for (const answer of [key, Promise.resolve(key)]) {
        const app = await web.start({ policy, key: () => answer as never });
        assert.equal((await app.get()).status, 500);
        assert.deepEqual(app.codes, ["FLOODGATE_INVALID_KEY"]);
      }
    });
  }
});
