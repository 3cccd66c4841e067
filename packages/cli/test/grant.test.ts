import { readFileSync } from "node:fs";
import { rateLimit } from "@floodgate/express";
import { redisRules } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import express from "express";
import { Redis } from "ioredis";
import supertest from "supertest";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

const { write } = tempFolder();
const text = `rules:
  # what users write
  - { name: posts, key: "header:x-user", policy: { algorithm: fixed-window, limit: 1, window: 365d }, plans: { pro: { limit: 4 } }, grants: [] }
  - { name: pairs, match: { path: /pairs }, key: [ip, "header:x-user"], limit: 9, window: 1h, ban: { after: 3, within: 1h, for: 1d } }
`;

/** The digest of "plain-secret". */
const secret = "secret:df28693588b818f36814ec1b91cd28913ab4762f81b5b1722d2a3881fca9fb51";

let server: RedisServer;
let redis: Redis;
let url: string;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port, server.host);
  url = `redis://${server.host}:${server.port}`;
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const run = (...args: string[]) => floodgate([...args, "--redis", url]);

describe("floodgate grant and revoke", () => {
  it("change what a running app lets a key do, and why says so", async () => {
    await run("push", write("limits.yaml", text));
    const rules = await redisRules(redis, "floodgate:rules");
    const limit = rateLimit({ rules, store: redisStore(redis, { denyCache: false }), timeoutMs: 10_000 });
    try {
      const client = supertest(express().use(limit, (_req, res) => void res.end()));
      const status = async () => (await client.get("/").set("x-user", "42")).status;
      expect([await status(), await status()]).toEqual([200, 429]);
      expect((await run("why", "--key", "42")).out).toMatch(/posts.*floodgate grant --rule posts --key 42 --plan pro --for 30d/);

      const { code, out } = await run("grant", "--rule", "posts", "--key", "42", "--plan", "pro", "--for", "30d");
      expect({ code, out }).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^posts, key 42: plan pro until .*\nfloodgate:rules: version 2\n$/),
      });
      await expect.poll(() => rules.version).toBe("2");
      expect([await status(), await status(), await status(), await status()]).toEqual([200, 200, 200, 429]);
      expect((await run("why", "--key", "42")).out).toMatch(
        /^42: its next request is rejected by posts\n(?:.*\n)* *posts +42 +limited +4 of 4 /m,
      );
      const told = JSON.parse((await run("status", "--rule", "posts", "--key", "42", "--json")).out);
      expect(told).toMatchObject({ grant: { plan: "pro" } });
      expect((await run("status", "--rule", "posts", "--key", "42")).out).toMatch(
        /^posts, key 42: limited\n(?:.*\n)* {2}granted: plan pro until /,
      );

      expect(JSON.parse((await run("revoke", "--rule", "posts", "--key", "42", "--json")).out)).toEqual({
        rule: "posts",
        key: "42",
        plan: null,
        until: null,
        rulesKey: "floodgate:rules",
        version: "3",
      });
      await expect.poll(() => rules.current.rules[0]?.grants).toEqual([]);
      expect(await status()).toBe(429);
    } finally {
      limit.close();
      await rules.close();
    }
  });

  it("write a file without Redis, and keep its comments", async () => {
    const file = write("own.yaml", text);
    const { out } = await floodgate(["grant", "--rule", "posts", "--key", "42", "--plan", "pro", "--until", "2100-01-31", "--file", file]);
    expect(out).toMatch(/^posts, key 42: plan pro until 2100-01-31 .*\n.*own\.yaml is written\n$/);
    expect(readFileSync(file, "utf8")).toContain("# what users write\n");
    expect(readFileSync(file, "utf8")).toContain('grants: [ { key: "42", plan: pro, until: 2100-01-31 } ]');
  });

  it.each([["grant", "--plan", "pro", "--until", "2100-01-31"], ["revoke"]])(
    "%s does not read standard input, which it cannot write",
    async (...args) => {
      const { code, out, err } = await floodgate([...args, "--rule", "posts", "--key", "42", "--file", "-"], "no rules");
      expect({ code, out, err }).toEqual({ code: 64, out: "", err: expect.stringContaining("--file must name one") });
    },
  );

  it("refuse to end a grant that the key does not have, in Redis and in a file, and write nothing", async () => {
    const granted = text.replace("grants: []", 'grants: [{ key: "42", plan: pro, until: 2100-01-31 }]');
    const file = write("granted.yaml", granted);
    await run("push", file);
    const revoke = ["revoke", "--rule", "posts", "--key", "43"];
    for (const told of [await run(...revoke), await floodgate([...revoke, "--file", file])]) {
      expect(told).toMatchObject({ code: 1, out: "", err: 'floodgate: key "43" has no grant under "posts". Nothing was changed.\n' });
    }
    expect(readFileSync(file, "utf8")).toBe(granted);
    expect((await run("pull")).out).toBe(granted);
  });

  it.each([
    ["that is over", "header:x-user", '"42"', "42", "2020-01-31"],
    ["of a secret in plain text", "header:x-api-key", '"42"', "42", "2100-01-31"],
    ["of a secret in plain text, found by its digest", "header:x-api-key", "plain-secret", secret, "2100-01-31"],
    ["of an address in another notation", "ip", '"2001:DB8::1"', "2001:db8::2", "2100-01-31"],
  ])("revoke ends a grant %s, in Redis and in a file", async (_, key, written, given, until) => {
    const others = `{ key: "7", plan: pro, until: 2100-01-31 }`;
    const granted = text
      .replace('key: "header:x-user"', `key: "${key}"`)
      .replace("grants: []", `grants: [{ key: ${written}, plan: pro, until: ${until} }, ${others}]`);
    const file = write("granted.yaml", granted);
    await run("push", file);
    const revoke = ["revoke", "--rule", "posts", key === "ip" ? "--ip" : "--key", given];
    for (const told of [await run(...revoke), await floodgate([...revoke, "--file", file])]) expect(told).toMatchObject({ code: 0 });
    for (const left of [readFileSync(file, "utf8"), (await run("pull")).out]) {
      expect(parse(left).rules[0].grants).toEqual([parse(others)]);
    }
  });

  it.each<[string, string[], string]>([
    ["no plan", ["--until", "2100-01-31"], "say which plan the key has"],
    ["no end", ["--plan", "pro"], "say when it ends"],
    ["two ends", ["--plan", "pro", "--until", "2100-01-31", "--for", "1d"], "say when it ends"],
    ["an end without a zone", ["--plan", "pro", "--until", "2100-01-31T10:00"], "It must be a date, or a time with its zone"],
    ["an end in the past", ["--plan", "pro", "--until", "2020-01-31"], "--until 2020-01-31 is in the past"],
    ["an unknown plan", ["--plan", "gold", "--until", "2100-01-31"], 'must be one of the rule\'s plans (pro), but was "gold"'],
    ["a limit in code", ["--plan", "pro", "--until", "2100-01-31", "--policy", "1/1m"], "a limit that is defined in code has no grants"],
  ])("refuse %s", async (_case, args, message) => {
    await run("push", write("limits.yaml", text));
    const { code, err } = await run("grant", "--rule", "posts", "--key", "42", ...args);
    expect(code).not.toBe(0);
    expect(err).toContain(message);
  });
});

it("why shows the rejections that count towards a ban", async () => {
  const store = redisStore(redis, { denyCache: false });
  const file = write("bans.yaml", text.replace("limit: 9", "limit: 1"));
  const { fileRules } = await import("@floodgate/rules");
  const rules = await fileRules(file);
  const limit = rateLimit({ rules, store, timeoutMs: 10_000, clientIp: () => "203.0.113.9" });
  try {
    const client = supertest(express().use(limit, (_req, res) => void res.end()));
    for (let i = 0; i < 3; i++) await client.get("/pairs").set("x-user", `user ${i % 1}`);
    const { out } = await run("why", "--ip", "203.0.113.9", "--file", file);
    expect(out.replace(/ {2,}/g, "  ")).toContain("of 3 rejections within 1h for a ban");
    expect(out).toContain("floodgate reset --rule pairs --key 203.0.113.9 --key 'user 0'");
  } finally {
    limit.close();
    await rules.close();
  }
});
