import assert from "node:assert/strict";
import { type FloodgateEvent, fixedWindow } from "../../src/index.js";
import { FaultyStore } from "../faulty-store.js";
import { type App, describe, it, type LimitSetup, memory } from "./app.js";

const policy = fixedWindow({ limit: 100, window: "1m" });

/** An IPv6 client. */
const client = "2001:db8:1:2:3:4:5:6";

/** Warnings about mistakes that only traffic shows. */
const codes = (events: readonly FloodgateEvent[]): string[] => events.flatMap((event) => (event.type === "warning" ? [event.code] : []));

describe("two middlewares with one name and one store", () => {
  const limit = { name: "api", policy };
  const other: LimitSetup["key"] = () => "another key";

  it("count a request twice, and warn once", async (web) => {
    const { onEvent } = web.listen("warning");
    const steps = [{ limit: 0 }, { limit: 1, path: "/login" }, { route: "/login" }, { route: "/" }];
    const app = await web.start({
      limits: [
        { ...limit, onEvent },
        { ...limit, onEvent },
      ],
      steps,
    });
    await app.statuses(3, "/");
    assert.deepEqual(codes(web.events), []);
    await app.statuses(10, "/login");
    assert.deepEqual(codes(web.events), ["FLOODGATE_COUNTED_TWICE"]);
    const [warning] = web.events.filter((event) => event.type === "warning");
    assert.match(warning?.type === "warning" ? warning.message : "", /"api".* Mount only one, or give each its own name/);
  });

  it("warn if the request passes another limit between them, and if keys are promises", async (web) => {
    const { onEvent } = web.listen("warning");
    const key = async () => "one key";
    const limits = [
      { ...limit, key, onEvent },
      { name: "other", policy, onEvent },
      { ...limit, key, onEvent },
    ];
    const app = await web.start({ limits });
    await app.statuses(5);
    assert.deepEqual(codes(web.events), ["FLOODGATE_COUNTED_TWICE"]);
  });

  for (const [kind, limits] of [
    ["the names differ", [limit, { ...limit, name: "other" }]],
    ["the keys differ", [limit, { ...limit, key: other }]],
    ["the second exempts the client", [limit, { ...limit, exempt: { ips: ["127.0.0.1"] } }]],
  ] as [string, LimitSetup[]][]) {
    it(`cause no warning if ${kind}`, async (web) => {
      const { onEvent } = web.listen("warning");
      const app = await web.start({ limits: limits.map((one) => ({ ...one, onEvent })) });
      await app.statuses(10);
      assert.deepEqual(codes(web.events), []);
    });
  }

  it("cause no warning if the stores differ, or if it is one middleware that is mounted twice", async (web) => {
    const { onEvent } = web.listen("warning");
    const own = { ...limit, store: memory(() => web.nowMs), onEvent };
    const app = await web.start({
      limits: [own, { ...limit, onEvent }],
      steps: [{ limit: 0 }, { limit: 1 }, { limit: 0 }, { route: "/" }],
    });
    await app.statuses(10);
    assert.deepEqual(codes(web.events), []);
  });
});

describe("a key function that returns the client's full IPv6 address", () => {
  const through = { clientIp: { trustedHops: 1 } } as const;
  const forwarded = (address: string) => ({ "x-forwarded-for": address });
  const address: LimitSetup["key"] = (request) => request.header("x-forwarded-for");

  for (const [kind, limit] of [
    ["alone", { key: address }],
    ["as a part of a tuple", { key: (request) => [request.header("x-forwarded-for") ?? "", "login"] }],
    ["by promise", { key: async (request) => request.header("x-forwarded-for") }],
    ["under a name", { key: "address", keys: { address } }],
  ] as [string, LimitSetup][]) {
    it(`limits nobody, and warns once: ${kind}`, async (web) => {
      const { onEvent } = web.listen("warning");
      const app = await web.start({ ...limit, ...through, name: "api", policy, onEvent });
      await app.statuses(2, "/", forwarded("192.0.2.1"));
      await app.statuses(2, "/", forwarded("::ffff:192.0.2.1"));
      assert.deepEqual(codes(web.events), []);
      await app.statuses(3, "/", forwarded(client));
      assert.deepEqual(codes(web.events), ["FLOODGATE_KEY_PER_ADDRESS"]);
      const [warning] = web.events.filter((event) => event.type === "warning");
      assert.match(warning?.type === "warning" ? warning.message : "", /"api".* Write key: "ip", or \(req, \{ ip \}\) => ip/);
    });
  }

  for (const [kind, limit] of [
    ["the ip that the function receives", { key: (_, { ip }) => ip }],
    ['key: "ip"', { key: "ip" }],
    ["another address than the client's", { key: () => "2001:db8::9" }],
    ["a text with colons", { key: () => "user:42:a" }],
    ["each address on purpose", { key: address, ipv6Prefix: 128 }],
  ] as [string, LimitSetup][]) {
    it(`causes no warning for ${kind}`, async (web) => {
      const { onEvent } = web.listen("warning");
      const app = await web.start({ ...limit, ...through, policy, onEvent });
      await app.statuses(3, "/", forwarded(client));
      assert.deepEqual(codes(web.events), []);
    });
  }
});

describe("a mistake that several limits have", () => {
  const address: LimitSetup["key"] = (request) => request.header("x-forwarded-for");
  for (const [code, rule] of [
    ["FLOODGATE_LIMIT_OF_ZERO", { policy: fixedWindow({ limit: 0, window: "1m" }) }],
    ["FLOODGATE_MATCH_ANSWERS_NOTHING", { policy, match: () => undefined as unknown as boolean }],
    ["FLOODGATE_SHADOW_RULE_FAILS", { policy, mode: "shadow", key: () => assert.fail("no user") }],
    ["FLOODGATE_KEY_PER_ADDRESS", { policy, key: address }],
  ] as const) {
    it(`is told once for each of them: ${code}`, async (web) => {
      const { onEvent } = web.listen("warning");
      const rules = ["one", "other"].map((name) => ({ name, ...rule }));
      const app = await web.start({ rules, clientIp: { trustedHops: 1 }, onEvent });
      await app.statuses(2, "/", { "x-forwarded-for": client });
      assert.deepEqual(codes(web.events), [code, code]);
      for (const [i, { name }] of rules.entries()) assert.match(JSON.stringify(web.events[i]), new RegExp(`\\\\"${name}\\\\"`));
    });
  }
});

describe("rules that are all for Envoy's rate limit service", () => {
  const edge = { name: "edge", match: { domain: "edge" }, key: "ip", policy } as const;

  it("limit nothing and warn, until another rule counts requests", async (web) => {
    const { onEvent } = web.listen("warning");
    const app = await web.start({ rules: [edge], onEvent });
    assert.equal((await app.get()).headers["ratelimit"], undefined);
    assert.deepEqual(codes(web.events), ["FLOODGATE_DESCRIPTORS_ONLY"]);
    await web.start({
      rules: [
        { ...edge, name: "edge-too" },
        { name: "web", policy },
      ],
      onEvent,
    });
    assert.deepEqual(codes(web.events), ["FLOODGATE_DESCRIPTORS_ONLY"]);
  });
});

describe("an unavailable store without listeners", () => {
  const during = async (body: () => Promise<void>): Promise<string[]> => {
    const { warn } = console;
    const logged: string[] = [];
    console.warn = (message: string) => void logged.push(message);
    try {
      await body();
    } finally {
      console.warn = warn;
    }
    return logged.map((message) => /^\[floodgate\] (FLOODGATE_STORE_\w+): /.exec(message)?.[1]).filter((code) => code !== undefined);
  };
  const until = async (app: App, degraded: boolean): Promise<void> => {
    while ((await app.get()).body.decision.degraded !== degraded) await new Promise((resolve) => setTimeout(resolve, 20));
  };

  it("warns on the console once, and once on its return; listeners get events instead", async (web) => {
    for (const listens of [false, true]) {
      const { onEvent } = web.listen("breaker");
      const store = new FaultyStore(memory(() => web.nowMs));
      const logged = await during(async () => {
        const app = await web.start({ policy, store, timeoutMs: 1000, ...(listens ? { onEvent } : {}) });
        store.fault = "rejects";
        assert.deepEqual(await app.statuses(10), Array(10).fill(200));
        store.fault = undefined;
        await until(app, false);
        // A second outage within a minute is not logged.
        store.fault = "rejects";
        await app.statuses(10);
        store.fault = undefined;
        await until(app, false);
      });
      assert.deepEqual(logged, listens ? [] : ["FLOODGATE_STORE_DOWN", "FLOODGATE_STORE_BACK"]);
    }
    assert.ok(web.events.some((event) => event.type === "breaker" && event.state === "open"));
  });
});
