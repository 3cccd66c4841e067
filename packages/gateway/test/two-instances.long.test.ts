import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Settings } from "../src/index.js";
import { apiClient, type Post } from "./api/client.js";
import { few, startServe, temporaryFolder, type World } from "./world.js";

/** Longer than a busy machine needs. */
const timeoutMs = 20_000;

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(() => redis.stop());

let prefixes = 0;

/** Two instances that count in one Redis. */
async function startTwo(rules: readonly object[], settings: Partial<Settings> = {}): Promise<[World, World]> {
  const shared = { redis: `redis://127.0.0.1:${redis.port}`, prefix: `t${++prefixes}`, apiListen: "127.0.0.1:0", timeoutMs, ...settings };
  return [await startServe(rules, shared), await startServe(rules, shared)];
}

async function clients(worlds: [World, World]): Promise<[Post, Post]> {
  return [await apiClient(worlds[0].api), await apiClient(worlds[1].api)];
}

function secretFile(): string {
  const path = join(temporaryFolder(), "secret");
  writeFileSync(path, `${"s".repeat(32)}\n`, { mode: 0o600 });
  return path;
}

const statusOf = async ({ ask }: World, ip = "203.0.113.9"): Promise<number> =>
  (await fetch(`${ask}/ask/caddy`, { headers: { "X-Forwarded-Method": "GET", "X-Forwarded-Uri": "/", "X-Forwarded-For": ip } })).status;

describe("Two instances with one Redis", () => {
  it("allow exactly the limit together, to gateways and to the JSON API", async () => {
    const worlds = await startTwo([few(50)]);
    const posts = await clients(worlds);
    const check = { rule: "few", key: "203.0.113.9", receipt: false };
    const answers = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const which = i % 2;
        return i % 4 < 2
          ? (await statusOf(worlds[which] as World)) === 204
          : (await (posts[which] as Post)("/v1/check", check)).body.allowed;
      }),
    );
    expect(answers.filter((allowed) => allowed)).toHaveLength(50);
  });

  it("charge all limits of a check, or none, in parallel too", async () => {
    const posts = await clients(await startTwo([few(30), { name: "all", key: "global", limit: 45, window: "365d" }]));
    const bodies = Array.from({ length: 80 }, (_, i) => ({
      checks: [
        { rule: "few", key: i % 2 === 0 ? "ann" : "bob" },
        { rule: "all", key: "global" },
      ],
      receipt: false,
    }));
    const answers = await Promise.all(bodies.map((body, i) => (posts[i % 2] as Post)("/v1/check", body)));
    expect(answers.filter(({ body }) => body.allowed)).toHaveLength(45);
    const [post] = posts;
    const used = async (rule: string, key: string): Promise<number> => {
      const { body } = await post("/v1/status", { rule, key });
      return body.limit - body.remaining;
    };
    expect((await used("few", "ann")) + (await used("few", "bob"))).toBe(45);
    expect(await used("all", "global")).toBe(45);
  });

  it("redeem each receipt once, whichever of them is asked", async () => {
    const posts = await clients(await startTwo([few(10)], { secretFile: secretFile() }));
    const { receipt } = (await posts[0]("/v1/check", { rule: "few", key: "ann", cost: 4 })).body;
    const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => (posts[i % 2] as Post)("/v1/settle", { receipt, cost: 7 })));
    expect(answers.map(({ body }) => body.units[0].units).sort()).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 3]);
    expect((await posts[1]("/v1/refund", { receipt })).body).toEqual({ units: [{ rule: "few", units: 0 }] });
    expect((await posts[1]("/v1/status", { rule: "few", key: "ann" })).body).toMatchObject({ remaining: 3 });
  });

  it("sign no receipts without a secret that both know, and say so", async () => {
    const [post] = await clients(await startTwo([few(10)]));
    expect((await post("/v1/check", { rule: "few", key: "ann" })).body).toMatchObject({ allowed: true, receipt: null });
    expect(await post("/v1/settle", { receipt: "fb1.e30", cost: 1 })).toMatchObject({
      status: 409,
      body: { code: "no-secret-file", detail: expect.stringContaining("--secret-file") },
    });
  });

  it("block a key for each other", async () => {
    const worlds = await startTwo([few(10)]);
    const [post] = await clients(worlds);
    await post("/v1/block", { rule: "few", key: "203.0.113.9", for: "1h" });
    expect(await statusOf(worlds[1])).toBe(429);
    await post("/v1/unblock", { rule: "few", key: "203.0.113.9" });
    expect(await statusOf(worlds[0])).toBe(204);
  });
});

describe("While Redis is down", () => {
  const ask = ({ ask }: World, preset: string): Promise<Response> =>
    fetch(`${ask}/ask/${preset}`, {
      headers: {
        "X-Original-Method": "GET",
        "X-Original-URI": "/",
        "X-Original-For": "203.0.113.9",
        "X-Forwarded-Method": "GET",
        "X-Forwarded-Uri": "/",
        "X-Forwarded-For": "203.0.113.9",
      },
    });
  /** Nobody listens there. */
  const nowhere = { redis: "redis://127.0.0.1:1", apiListen: "127.0.0.1:0" };

  it("onStoreError: allow lets requests pass without RateLimit headers", async () => {
    const world = await startServe([few(1)], nowhere);
    for (const preset of ["nginx", "caddy", "envoy", "caddy"]) {
      const response = await ask(world, preset);
      expect([response.ok, response.headers.get("ratelimit"), response.headers.get("ratelimit-policy")]).toEqual([true, null, null]);
    }
    const post = await apiClient(world.api);
    expect((await post("/v1/check", { rule: "few", key: "ann" })).body).toMatchObject({ allowed: true, degraded: true });
    expect(await post("/v1/reset", { rule: "few", key: "ann" })).toMatchObject({ status: 503, headers: expect.anything() });
  });

  it("onStoreError: deny answers 503, and to nginx 403 that says 503", async () => {
    const world = await startServe([few(1)], { ...nowhere, onStoreError: "deny" });
    const statuses = [];
    for (const preset of ["nginx", "caddy", "envoy"]) {
      const { status, headers } = await ask(world, preset);
      statuses.push([status, headers.get("x-floodgate-status"), headers.get("ratelimit"), headers.get("retry-after")]);
    }
    expect(statuses).toEqual([
      [403, "503", null, "1"],
      [503, null, null, "1"],
      [503, null, null, "1"],
    ]);
    const post = await apiClient(world.api);
    expect((await post("/v1/check", { rule: "few", key: "ann" })).body).toMatchObject({ allowed: false, degraded: true });
  });
});
