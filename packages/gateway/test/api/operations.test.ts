import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, it, vi } from "vitest";
import type { Settings } from "../../src/index.js";
import { few, startServe } from "../world.js";
import { apiClient, type Post } from "./client.js";

const apiOnly = { presets: [], apiListen: "127.0.0.1:0" };

async function startApi(rules: readonly object[], settings: Partial<Settings> = {}): Promise<Post> {
  return apiClient((await startServe(rules, { ...apiOnly, ...settings })).api);
}

const emails = { name: "emails", key: "global", policy: { algorithm: "token-bucket", capacity: 10, refill: 1, every: "365d" } };

it("The OpenAPI description is valid", async () => {
  const { api } = await startServe([few(1)], { presets: [], apiListen: "127.0.0.1:0" });
  const description = (await (await fetch(`${api}/v1/openapi.json`)).json()) as Record<string, unknown>;
  expect(await new Validator().validate(description)).toEqual({ valid: true });
  expect(Object.keys(description["paths"] as object)).toEqual(
    ["check", "settle", "refund", "renew", "status", "reset", "block", "unblock"].map((name) => `/v1/${name}`),
  );
  expect(JSON.stringify(description)).not.toContain("$defs");
});

it("The example of the docs answers as they say", async () => {
  const page = readFileSync(join(__dirname, "../../../../docs/gateways/json-api.md"), "utf8");
  const [, body = "", answer = ""] = /-d '(.*?)'\n```\n\n```json\n(.*?)```/s.exec(page) ?? [];
  const post = await startApi([
    { name: "emails", key: "header:x-tenant", policy: { algorithm: "fixed-window", limit: 100, window: "1m" } },
  ]);
  const expected = JSON.parse(answer);
  expected.receipt = expect.stringMatching(/^fb1\.W1siZW1haWxzIiwi/);
  expected.decisions[0].resetAfterMs = expect.any(Number);
  expect((await post("/v1/check", body)).body).toEqual(expected);
});

describe("POST /v1/check", () => {
  it("takes units of one rule", async () => {
    const post = await startApi([few(3)]);
    expect(await post("/v1/check", { rule: "few", key: "ann" })).toMatchObject({
      status: 200,
      body: {
        allowed: true,
        retryAfterMs: 0,
        delayMs: 0,
        degraded: false,
        decisions: [{ rule: "few", key: "ann", allowed: true, limit: 3, remaining: 2, cost: 1, shadow: false }],
        receipt: expect.stringMatching(/^fb1\./),
      },
    });
    const { body } = await post("/v1/check", { rule: "few", key: "ann", cost: 3 });
    expect(body).toMatchObject({ allowed: false, decisions: [{ allowed: false, remaining: 2 }], receipt: null });
    expect(body.retryAfterMs).toBeGreaterThan(0);
  });

  it("takes units of several rules, or of none", async () => {
    const post = await startApi([few(2), emails]);
    const checks = [
      { rule: "few", key: "ann" },
      { rule: "emails", key: "global", cost: 4 },
    ];
    for (const remaining of [6, 2]) {
      expect((await post("/v1/check", { checks })).body).toMatchObject({ allowed: true, decisions: [{}, { remaining }] });
    }
    expect((await post("/v1/check", { checks })).body).toMatchObject({ allowed: false, receipt: null });
    expect((await post("/v1/status", { rule: "emails", key: "global" })).body).toMatchObject({ remaining: 2 });
  });

  it("lets the rules decide a request", async () => {
    const post = await startApi([few(1, { match: { method: "POST", path: "/login" }, key: ["ip", "header:x-user"] }), emails]);
    const request = { method: "POST", path: "/login?next=/", headers: { "X-User": "ann" }, ip: "203.0.113.9" };
    expect((await post("/v1/check", { request })).body).toMatchObject({
      allowed: true,
      decisions: [{ rule: "few", key: "(203.0.113.9,ann)" }, { rule: "emails" }],
    });
    expect((await post("/v1/check", { request })).body).toMatchObject({ allowed: false });
    expect((await post("/v1/check", { request: { ...request, method: "GET" } })).body).toMatchObject({
      allowed: true,
      decisions: [{ rule: "emails", remaining: 8 }],
    });
  });

  it("counts names and requests of one key together", async () => {
    const post = await startApi([few(2)]);
    await post("/v1/check", { request: { method: "GET", path: "/", ip: "203.0.113.9" } });
    expect((await post("/v1/check", { rule: "few", key: "203.0.113.9" })).body).toMatchObject({ allowed: true });
    expect((await post("/v1/check", { rule: "few", key: "203.0.113.9" })).body).toMatchObject({ allowed: false });
  });

  it("answers 429 with Retry-After if the body says so", async () => {
    const post = await startApi([few(1)]);
    const body = { rule: "few", key: "ann", status: 429 };
    expect((await post("/v1/check", body)).status).toBe(200);
    const limited = await post("/v1/check", body);
    expect(limited).toMatchObject({ status: 429, body: { allowed: false } });
    expect(Number(limited.headers.get("retry-after"))).toBeGreaterThan(0);
    const never = await post("/v1/check", { ...body, cost: 2 });
    expect([never.status, never.body.retryAfterMs, never.headers.get("retry-after")]).toEqual([429, null, null]);
  });

  it("answers the delay of a leaky bucket", async () => {
    const policy = { algorithm: "leaky-bucket", capacity: 2, leak: 1, every: "1d" };
    const post = await startApi([{ name: "queue", key: "global", policy }]);
    expect((await post("/v1/check", { rule: "queue", key: "global" })).body).toMatchObject({ allowed: true, delayMs: 0 });
    const { body } = await post("/v1/check", { rule: "queue", key: "global" });
    expect(body.allowed).toBe(true);
    expect(body.delayMs).toBeGreaterThan(0);
    expect(body.decisions[0].delayMs).toBe(body.delayMs);
    expect((await post("/v1/status", { rule: "queue", key: "global" })).body).toMatchObject({ states: [{ state: { kind: "queue" } }] });
  });

  it("sets units aside, shows them, and gives them back by receipt", async () => {
    const post = await startApi([
      { name: "slots", key: "global", policy: { algorithm: "concurrency", limit: 1, hold: "1h" } },
      few(10, { hold: "1h" }),
    ]);
    for (const [check, remaining, total] of [
      [{ rule: "slots", key: "global" }, 0, 1],
      [{ rule: "few", key: "ann", cost: 7 }, 3, 7],
    ] as const) {
      const { body } = await post("/v1/check", check);
      expect((await post("/v1/check", check)).body.allowed).toBe(false);
      const shown = await post("/v1/status", { rule: check.rule, key: check.key });
      expect(shown.body).toMatchObject({ remaining, states: [{ state: { kind: "held", total, held: [{ units: total }] } }] });
      expect((await post("/v1/refund", { receipt: body.receipt })).body).toEqual({ units: [{ rule: check.rule, units: -total }] });
      expect((await post("/v1/check", check)).body.allowed).toBe(true);
    }
  });

  it("renews slots by their receipt, which stays the same, until they are given back", async () => {
    const post = await startApi([{ name: "slots", key: "global", policy: { algorithm: "concurrency", limit: 1, hold: "1h" } }, few(10)]);
    const slot = { rule: "slots", key: "global" };
    const { receipt } = (await post("/v1/check", { checks: [slot, { rule: "few", key: "ann" }] })).body;
    const held = (allowed: boolean): object => ({ allowed, slots: [{ rule: "slots", allowed }] });
    for (let i = 0; i < 3; i++) expect((await post("/v1/renew", { receipt })).body).toEqual(held(true));
    expect((await post("/v1/check", slot)).body.allowed).toBe(false);
    expect((await post("/v1/refund", { receipt })).body).toMatchObject({ units: [{ units: -1 }, { units: -1 }] });
    expect((await post("/v1/renew", { receipt })).body).toEqual(held(false));
    expect((await post("/v1/check", slot)).body.allowed).toBe(true);
  });

  it("refuses to renew a receipt without slots", async () => {
    const post = await startApi([few(10, { hold: "1h" })]);
    const { receipt } = (await post("/v1/check", { rule: "few", key: "ann" })).body;
    expect(await post("/v1/renew", { receipt })).toMatchObject({ status: 409, body: { code: "no-slots" } });
  });

  it("rejects nothing for a shadow rule, and counts no exempt key", async () => {
    const post = await startApi([few(1, { mode: "shadow" }), { ...emails, exempt: { keys: ["acme"] } }]);
    expect((await post("/v1/check", { rule: "few", key: "ann", cost: 2 })).body).toMatchObject({
      allowed: true,
      decisions: [{ allowed: false, shadow: true }],
    });
    expect((await post("/v1/check", { rule: "emails", key: "acme" })).body).toMatchObject({ allowed: true, decisions: [], receipt: null });
  });

  it("leaves out the receipt if the body says so", async () => {
    const post = await startApi([few(1)]);
    expect((await post("/v1/check", { rule: "few", key: "ann", receipt: false })).body).toMatchObject({ allowed: true, receipt: null });
  });

  it("allows exactly the limit to parallel requests", async () => {
    const post = await startApi([few(50)]);
    const answers = await Promise.all(Array.from({ length: 100 }, () => post("/v1/check", { rule: "few", key: "ann" })));
    expect(answers.filter(({ body }) => body.allowed)).toHaveLength(50);
  });
});

describe("A receipt", () => {
  it("is settled once, for all rules of its check", async () => {
    const post = await startApi([few(10), emails]);
    const checks = [
      { rule: "few", key: ["ann", 7], cost: 5 },
      { rule: "emails", key: "global", cost: 5 },
    ];
    const { receipt } = (await post("/v1/check", { checks })).body;
    expect((await post("/v1/settle", { receipt, cost: 7 })).body).toEqual({
      units: [
        { rule: "few", units: 2 },
        { rule: "emails", units: 2 },
      ],
    });
    expect((await post("/v1/settle", { receipt, cost: 9 })).body).toMatchObject({ units: [{ units: 0 }, { units: 0 }] });
    expect((await post("/v1/refund", { receipt })).body).toMatchObject({ units: [{ units: 0 }, { units: 0 }] });
    expect((await post("/v1/status", { rule: "few", key: ["ann", 7] })).body).toMatchObject({ remaining: 3 });
  });

  it.each([
    ["a request's key", { request: { method: "GET", path: "/", ip: "203.0.113.9", headers: { "x-user": "a,b" } } }],
    ["a request without a key", { request: { method: "GET", path: "/", ip: "203.0.113.9" } }],
    ["an address in another notation", { rule: "few", key: "2001:db8::1" }],
    ["a secret", { rule: "secret", key: "my-api-key" }],
    ["a number", { rule: "few", key: 42 }],
    ["a long key", { rule: "few", key: "x".repeat(1000) }],
  ])("is refunded for %s", async (_, body) => {
    const rules = [
      few(5, { key: "header:x-user" }),
      { name: "secret", key: "secret:header:x-key", onMissingKey: "skip", limit: 5, window: "365d" },
    ];
    const post = await startApi(rules);
    const { receipt } = (await post("/v1/check", body)).body;
    expect((await post("/v1/refund", { receipt })).body.units).toEqual([expect.objectContaining({ units: -1 })]);
    expect((await post("/v1/check", body)).body.decisions[0]).toMatchObject({ remaining: 4 });
  });

  it("is used for the rules that are still in force", async () => {
    const changing = (hold: string) => ({ name: "changing", key: "global", policy: { algorithm: "concurrency", limit: 9, hold } });
    const slots = { name: "slots", key: "global", policy: { algorithm: "concurrency", limit: 2, hold: "1h" } };
    const { api, rulesFile } = await startServe([few(10), slots, emails, changing("1h")], apiOnly);
    const post = await apiClient(api);
    const checks = [
      { rule: "few", key: "ann" },
      { rule: "emails", key: "global" },
      { rule: "slots", key: "global" },
      { rule: "changing", key: "global" },
    ];
    const check = async () => (await post("/v1/check", { checks })).body.receipt;
    const [settled, refunded] = [await check(), await check()];
    const gone = (await post("/v1/check", { rule: "emails", key: "global" })).body.receipt;
    writeFileSync(rulesFile, JSON.stringify({ rules: [few(10), slots, changing("2h")] }));
    await vi.waitFor(async () => expect((await post("/v1/refund", { receipt: gone })).status).toBe(404), { timeout: 10_000 });
    expect((await post("/v1/renew", { receipt: settled })).body).toEqual({ allowed: true, slots: [{ rule: "slots", allowed: true }] });
    expect((await post("/v1/settle", { receipt: settled, cost: 3 })).body.units).toEqual([
      { rule: "few", units: 2 },
      { rule: "slots", units: -1 },
    ]);
    expect((await post("/v1/refund", { receipt: refunded })).body.units).toEqual([
      { rule: "few", units: -1 },
      { rule: "slots", units: -1 },
    ]);
    expect((await post("/v1/status", { rule: "few", key: "ann" })).body).toMatchObject({ remaining: 7 });
  });

  it("is refused if it was altered", async () => {
    const post = await startApi([few(5)]);
    const { receipt } = (await post("/v1/check", { rule: "few", key: "ann" })).body;
    const [[rule, , signed]] = JSON.parse(Buffer.from(receipt.slice(4), "base64url").toString());
    const forge = (parts: unknown): string => `fb1.${Buffer.from(JSON.stringify(parts)).toString("base64url")}`;
    for (const forged of [[[rule, "bob", signed]], [["few", {}, signed]], [], {}, [[1, 2, 3]], [["few", "ann", "fr1.x.y"]]]) {
      expect((await post("/v1/refund", { receipt: forge(forged) })).status).toBe(400);
    }
    expect((await post("/v1/refund", { receipt: forge([["constructor", "ann", signed]]) })).status).toBe(404);
    expect((await post("/v1/refund", { receipt })).body).toEqual({ units: [{ rule: "few", units: -1 }] });
  });
});

describe("A key", () => {
  it("is shown, reset, blocked and unblocked", async () => {
    const post = await startApi([few(2)]);
    const target = { rule: "few", key: "ann" };
    await post("/v1/check", { ...target, cost: 2 });
    expect((await post("/v1/status", target)).body).toMatchObject({
      allowed: false,
      remaining: 0,
      states: [{ plan: null, state: { kind: "windows" } }],
      block: null,
      ban: null,
    });
    expect((await post("/v1/reset", target)).status).toBe(204);
    expect((await post("/v1/block", { ...target, for: "1h" })).status).toBe(204);
    const { body } = await post("/v1/status", target);
    expect(body).toMatchObject({ allowed: false, block: { untilMs: expect.any(Number) } });
    expect((await post("/v1/check", target)).body).toMatchObject({ allowed: false });
    expect((await post("/v1/unblock", target)).status).toBe(204);
    expect((await post("/v1/check", target)).body).toMatchObject({ allowed: true });
  });

  it("may be a client that had none", async () => {
    const post = await startApi([few(2, { key: "header:x-user" })]);
    await post("/v1/check", { request: { method: "GET", path: "/", ip: "203.0.113.9" } });
    expect((await post("/v1/status", { rule: "few", key: { missingKeyIp: "203.0.113.9" } })).body).toMatchObject({ remaining: 1 });
    expect((await post("/v1/check", { rule: "few", key: { missingKeyIp: "203.0.113.9" } })).status).toBe(400);
  });

  it("is shown under each plan", async () => {
    const post = await startApi([few(2, { plans: { pro: { limit: 20 } } })], { plan: "header:x-plan" });
    expect((await post("/v1/check", { rule: "few", key: "ann", plan: "pro", cost: 5 })).body).toMatchObject({ allowed: true });
    expect((await post("/v1/status", { rule: "few", key: "ann" })).body).toMatchObject({
      states: [
        { plan: null, remaining: 0 },
        { plan: "pro", remaining: 15 },
      ],
    });
  });
});
