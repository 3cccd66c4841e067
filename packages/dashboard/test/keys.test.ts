import { createLimiter, fixedWindow, type Limiter, slidingWindowLog, tokenBucket } from "@floodgate/core";
import type { Grant, GrantChange, RuleSource, RuleUser } from "@floodgate/core/rules";
import { rateLimit } from "@floodgate/express";
import { memoryStore } from "@floodgate/store-memory";
import express from "express";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { KeyAnswer, Overview, RequestAnswer } from "../src/contract.js";
import { dashboard } from "../src/express.js";
import type { DashboardOptions } from "../src/options.js";
import { KeyLabels } from "../src/routes/key-labels.js";
import { ask, type Reply } from "./adapters/http.js";
import { type Listening, listening } from "./listening.js";

const startMs = Date.UTC(2026, 0, 1);
let nowMs: number;
let app: Listening & { readonly dashboard: { close(): void } };
let perIp: ReturnType<typeof rateLimit>;
let api: Limiter<"sync">;

async function start(options: DashboardOptions<never>): Promise<void> {
  const server = express();
  const own = dashboard(options as never);
  const store = memoryStore({ clock: () => nowMs });
  const policy = fixedWindow({ limit: 2, window: "1h" });
  perIp = rateLimit({ rules: [{ name: "per-ip", key: "ip", policy, ban: { after: 5, within: "1h", for: "1h" } }], store });
  api = createLimiter({ name: "api", policy: tokenBucket({ capacity: 10, refill: 1, every: "1s" }), store });
  server.use("/f", own);
  server.use(perIp);
  server.get("/", (_, res) => void res.send("hello"));
  app = { ...(await listening(server)), dashboard: own };
}

beforeEach(() => {
  nowMs = startMs;
});

afterEach(async () => {
  app.dashboard.close();
  perIp.close();
  api.close();
  await app.close();
});

const headers = { "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin" };
const post = (path: string, body: unknown): Promise<Reply> =>
  ask(app.port, `/f${path}`, { method: "POST", headers, body: JSON.stringify(body) });

async function lookUp(body: unknown): Promise<KeyAnswer> {
  const { status, text } = await post("/data/key", body);
  expect([status, text]).toEqual([200, expect.any(String)]);
  return JSON.parse(text);
}

describe("a key that is looked up", () => {
  it("is an address of the network that its rule counts as one client", async () => {
    await start({});
    const wide = rateLimit({ name: "wide", limit: 2, window: "1h", ipv6Prefix: 64, store: memoryStore({ clock: () => nowMs }) });
    try {
      wide.limiter.block("2001:db8:0:1::1", "1h");
      for (const key of ["2001:db8:0:1::2", "2001:DB8:0:1::/64", "2001:db8:0:1::/56"]) {
        expect((await lookUp({ key, rule: "wide" })).states[0]?.block).toEqual({ untilMs: nowMs + 3_600_000 });
      }
      expect((await lookUp({ key: "2001:db8:0:2::1", rule: "wide" })).states[0]?.block).toBeUndefined();
    } finally {
      wide.close();
    }
  });

  it("shows its state under each rule as what it is", async () => {
    await start({ showKeys: true });
    await ask(app.port, "/");
    api.consume("ann", { cost: 4 });
    const ip = await lookUp({ key: "127.0.0.1", rule: "per-ip" });
    const hour = 3_600_000;
    expect(ip).toEqual({
      key: "127.0.0.1",
      states: [
        {
          rule: "per-ip",
          mode: "enforce",
          shared: false,
          rejections: { count: 0, error: 0, sinceMs: expect.any(Number) },
          atMs: startMs,
          decision: { allowed: true, limit: 2, remaining: 1, retryAfterMs: 0, resetAfterMs: hour, delayMs: 0 },
          states: [
            {
              policy: "2 per 1h, fixed-window",
              state: { kind: "windows", windowMs: hour, limit: 2, windows: [{ startMs, endMs: startMs + hour, count: 1, weight: 1 }] },
            },
          ],
        },
      ],
    });
    expect((await lookUp({ key: "ann" })).states).toMatchObject([
      { rule: "api", states: [{ state: { kind: "bucket", level: 6, capacity: 10 } }] },
    ]);
  });

  it("is an address in any notation", async () => {
    await start({});
    await ask(app.port, "/");
    expect((await lookUp({ key: "::ffff:127.0.0.1", rule: "per-ip" })).states[0]?.decision?.remaining).toBe(1);
    expect((await lookUp({ key: "2001:db8::/56", rule: "per-ip" })).states[0]?.states?.[0]?.state.kind).toBe("empty");
    expect((await post("/data/key", { key: "ann", rule: "per-ip" })).status).toBe(400);
  });

  it("says how often it was rejected in the last hour", async () => {
    await start({});
    const before = (await lookUp({ key: "127.0.0.1", rule: "per-ip" })).states[0]?.rejections?.count ?? 0;
    for (let i = 0; i < 5; i++) await ask(app.port, "/");
    expect((await lookUp({ key: "127.0.0.1", rule: "per-ip" })).states[0]?.rejections).toMatchObject({ count: before + 3, error: 0 });
  });

  it("is found by the id of a top key, which does not show it", async () => {
    await start({});
    for (const key of ["user:4242", "(tuple", "\\escaped", "secret:x", "x".repeat(300)]) api.consume(key);
    api.consume(["ann", "a,b"]);
    api.consume(["ann", ["a", "b"]]);
    // The ids stand in the overview, whose second need not have ended for that.
    const overview: Overview = JSON.parse((await ask(app.port, "/f/data/overview")).text);
    expect(JSON.stringify(overview)).not.toContain("user:4242");
    const tops = overview.top.byRequests.keys.filter(({ rule }) => rule === "api");
    expect(tops).toHaveLength(7);
    for (const { id, rule, key } of tops) {
      const { status, text } = await post("/data/key", { id, rule });
      // Only its hash is known.
      if (key.startsWith("#")) expect(status).toBe(400);
      else expect(JSON.parse(text)).toMatchObject({ key, states: [{ decision: { remaining: 9 } }] });
    }
    expect((await post("/data/key", { id: "AAAAAAAAAAAAAAAAAAAAAA" })).status).toBe(404);
  });

  it("is found by its id in one search, however many rules there are", async () => {
    await start({});
    const many = Array.from({ length: 20 }, (_, i) =>
      createLimiter({ name: `many-${i}`, policy: fixedWindow({ limit: 1, window: "1h" }), store: memoryStore() }),
    );
    api.consume("ann");
    const { top }: Overview = JSON.parse((await ask(app.port, "/f/data/overview")).text);
    const id = top.byRequests.keys.find(({ rule }) => rule === "api")?.id as string;
    const compared = vi.spyOn(KeyLabels.prototype, "idOf");
    try {
      await lookUp({ id, rule: "api" });
      const underOne = compared.mock.calls.length;
      await lookUp({ id });
      expect(compared.mock.calls.length).toBe(2 * underOne);
    } finally {
      compared.mockRestore();
      for (const limiter of many) limiter.close();
    }
  });

  it("is refused under a rule that does not exist", async () => {
    await start({});
    for (const rule of ["none", "__proto__", ""]) expect((await post("/data/key", { key: "ann", rule })).status).toBe(404);
  });
});

describe("an action", () => {
  it("needs `actions`, and `authorize` with it", async () => {
    await start({});
    for (const action of ["reset", "block", "unblock", "grant", "revoke"]) {
      expect((await post(`/actions/${action}`, { key: "ann", rule: "api", forMs: 1000 })).status).toBe(403);
    }
    expect(() => dashboard({ actions: true })).toThrow(/`actions` needs `authorize`/);
  });

  it("resets, blocks and unblocks a key, and answers its new state", async () => {
    await start({ actions: true, authorize: () => true });
    api.consume("ann", { cost: 7 });
    const target = { key: "ann", rule: "api" };
    expect(JSON.parse((await post("/actions/reset", target)).text)).toMatchObject({ states: [{ states: [{ state: { kind: "empty" } }] }] });
    expect(api.peek("ann").remaining).toBe(10);
    const blocked = JSON.parse((await post("/actions/block", { ...target, forMs: 90_000 })).text);
    expect(blocked).toMatchObject({
      states: [{ decision: { allowed: false, retryAfterMs: 90_000 }, block: { untilMs: startMs + 90_000 } }],
    });
    expect(api.consume("ann").allowed).toBe(false);
    expect(JSON.parse((await post("/actions/unblock", target)).text).states[0].block).toBeUndefined();
    expect(api.consume("ann").allowed).toBe(true);
  });

  it("lifts a ban of a rule", async () => {
    await start({ actions: true, authorize: () => true });
    for (let i = 0; i < 8; i++) await ask(app.port, "/");
    const target = { key: "127.0.0.1", rule: "per-ip" };
    expect((await lookUp(target)).states[0]?.ban).toEqual({ untilMs: startMs + 3_600_000 });
    expect(JSON.parse((await post("/actions/reset", target)).text).states[0].ban).toBeUndefined();
    expect((await ask(app.port, "/")).status).toBe(200);
  });

  it.each(["global", "header:x-api-key"])(
    "grants a key (%s) a plan until a time if the app can write its rules, and revokes it",
    async (keyName) => {
      await start({ actions: true, authorize: () => true, who: () => "eve" });
      const rule = { name: "writable", key: keyName, limit: 1, window: "1h", plans: { pro: { limit: 5 } }, grants: [] as Grant[] };
      const changes: GrantChange[] = [];
      const users: RuleUser[] = [];
      const source: RuleSource = {
        current: { rules: [rule as never] },
        subscribe: (user) => {
          users.push(user);
          return () => undefined;
        },
        async grant(change) {
          changes.push(change);
          const grants = rule.grants.filter(({ key }) => (change.textOf?.(key) ?? key) !== change.key);
          if (change.grant !== undefined) grants.push({ key: change.key, ...change.grant });
          for (const user of users) user.prepare({ rules: [{ ...rule, grants } as never] })();
        },
      };
      const live = rateLimit({ rules: source, store: memoryStore({ clock: () => nowMs }), plan: () => undefined });
      try {
        const target = { key: "global", rule: "writable" };
        expect((await lookUp(target)).states[0]).toMatchObject({ mayGrant: ["pro"], decision: { limit: 1 } });
        const untilMs = Date.now() + 86_400_000;
        const { text } = await post("/actions/grant", { ...target, plan: "pro", untilMs });
        expect(JSON.parse(text).states[0]).toMatchObject({ grant: { plan: "pro", untilMs }, decision: { limit: 5 } });
        const grant = { plan: "pro", until: new Date(untilMs).toISOString() };
        const key = live.limiter.keyText("global");
        expect(changes).toMatchObject([{ rule: "writable", key, grant, by: "eve" }]);
        // A secret may stand in the rules in plain text.
        rule.grants.push({ key: "global", ...grant });
        expect(JSON.parse((await post("/actions/revoke", target)).text).states[0]).not.toHaveProperty("grant");
        for (const wrong of [{ plan: "gold", untilMs }, { plan: "pro", untilMs: 1 }, { plan: "pro" }, { untilMs }]) {
          expect((await post("/actions/grant", { ...target, ...wrong })).status).toBe(400);
        }
        expect((await post("/actions/grant", { key: "127.0.0.1", rule: "per-ip", plan: "pro", untilMs })).text).toContain(
          "it has no plans",
        );
      } finally {
        live.close();
      }
    },
  );

  it.each([undefined, 0, 999, 1000.5, "1h", 1e12, -1000, null])("refuses to block for %j", async (forMs) => {
    await start({ actions: true, authorize: () => true });
    expect((await post("/actions/block", { key: "ann", rule: "api", forMs })).status).toBe(400);
  });

  it("refuses to act on every rule at once", async () => {
    await start({ actions: true, authorize: () => true });
    expect((await post("/actions/reset", { key: "ann" })).status).toBe(400);
  });

  it("says when the store fails", async () => {
    await start({ actions: true, authorize: () => true });
    const store = { ...brokenStore };
    const broken = createLimiter({ name: "broken", policy: slidingWindowLog({ limit: 2, window: "1h" }), store: store as never });
    expect(await post("/actions/reset", { key: "ann", rule: "broken" })).toMatchObject({
      status: 502,
      text: expect.stringContaining("out of order"),
    });
    expect((await lookUp({ key: "ann", rule: "broken" })).states).toMatchObject([
      { rule: "broken", failed: expect.stringContaining("out of order") },
    ]);
    broken.close();
  });
});

describe("a request that is asked about", () => {
  const asked = async (body: unknown): Promise<RequestAnswer> => JSON.parse((await post("/data/request", body)).text);

  it("shows no counts if the store fails and nobody has counted", async () => {
    await start({ showKeys: true });
    const more = rateLimit({ name: "away", store: { ...brokenStore } as never, limit: 2, window: "1h", onStoreError: "allow" });
    try {
      const { rules } = await asked({ path: "/", ip: "203.0.113.7" });
      const away = rules.find(({ rule }) => rule === "away");
      expect(away).toMatchObject({ words: "passes: the store fails (onStoreError: allow)", limit: 2 });
      expect(away).not.toHaveProperty("used");
    } finally {
      more.close();
    }
  });

  it("gets what each rule of the process would say, without a charge and without a call of the app's functions", async () => {
    await start({ showKeys: true });
    const store = memoryStore({ clock: () => nowMs });
    const window = "1h";
    const fail = (): never => {
      throw new Error("not called");
    };
    const more = rateLimit({
      store,
      keys: { user: fail },
      plan: fail,
      rules: [
        { name: "posts", match: { method: "POST", path: "/posts" }, key: ["ip", "user"], limit: 1, window, plans: { pro: { limit: 3 } } },
        { name: "own", key: fail, match: { path: "/posts" }, limit: 2, window },
        { name: "beta", match: fail, limit: 2, window },
        { name: "token", match: { path: "/posts" }, key: "header:x-api-key", onMissingKey: "skip", limit: 2, window },
        { name: "other", match: { path: "/other" }, limit: 2, window },
      ],
    });
    try {
      more.limiters.get("posts")?.block(["203.0.113.7", "ann"], "1h");
      const request = { method: "post", path: "/posts?x", ip: "203.0.113.7", keys: { user: "ann", own: "42" } };
      const { verdict, rules } = await asked(request);
      expect(verdict).toBe("would be rejected with 429 by posts. It would pass in 1h");
      const words = Object.fromEntries(
        rules.map(({ rule, words, key, used, limit }) => [rule, key === undefined ? [words] : [words, key, used, limit]]),
      );
      expect(words).toMatchObject({
        "per-ip": ["passes", "203.0.113.7", 0, 2],
        posts: ["rejects: blocked, for 1h", "(203.0.113.7,ann)", 0, 1],
        own: ["passes", "42", 0, 2],
        beta: ["its `match` is a function of the request, which only a real request can answer"],
        token: ["no key (give header:x-api-key): not counted (onMissingKey: skip)"],
        other: ["path: the rule matches /other"],
      });
      expect(
        (await asked({ ...request, plan: "pro", keys: { user: "bob", own: "42" } })).rules.find(({ rule }) => rule === "posts"),
      ).toMatchObject({
        limit: 3,
        used: 0,
      });
      expect((await asked({ ...request, keys: { own: "42" } })).verdict).toMatch(/^would pass, unless beta rejects it$/);
    } finally {
      more.close();
    }
  });

  it("must be a request", async () => {
    await start({});
    for (const wrong of [
      {},
      { path: "posts" },
      { path: "/", headers: [] },
      { path: "/", keys: { user: 1 } },
      { path: "/", method: "a b" },
      { path: "/", ip: 1 },
    ])
      expect((await post("/data/request", wrong)).status).toBe(400);
  });
});

const fail = (): Promise<never> => Promise.reject(new Error("out of order"));
const brokenStore = Object.fromEntries(
  ["consume", "consumeAll", "peek", "settle", "reset", "block", "unblock", "keyState"].map((method) => [method, fail]),
);
