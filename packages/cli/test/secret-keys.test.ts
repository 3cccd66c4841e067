import { inspect } from "node:util";
import type { FloodgateEvent } from "@floodgate/core";
import { rateLimit } from "@floodgate/express";
import { fileRules } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import express from "express";
import { Redis } from "ioredis";
import supertest from "supertest";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type Ended, floodgate } from "./command.js";
import { tempFolder } from "./files.js";

const secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const keySecret = "a secret of the app, 32 characters or more";

const { write } = tempFolder();
const file = write(
  "limits.yaml",
  `rules:
  - { name: partners, key: header:x-api-key, onMissingKey: ip, limit: 1, window: 365d, ban: { after: 1, within: 1h, for: 1d } }
  - { name: sessions, key: [ip, secret:session], onMissingKey: skip, limit: 1, window: 365d }
`,
);

let server: RedisServer;
let url: string;
beforeAll(async () => {
  server = await startRedis();
  url = `redis://${server.host}:${server.port}/1`;
});
beforeEach(async () => {
  await server.command("FLUSHALL");
  return () => vi.unstubAllEnvs();
});
afterAll(() => server.stop());

const command = (name: string, ...args: string[]): Promise<Ended> => floodgate([name, ...args, "--file", file, "--redis", url]);
const digestIn = (text: string): string => /secret:[0-9a-f]{64}/.exec(text)?.[0] ?? "none";

/** An app with these rules. `seen` collects all Redis commands and all events. */
async function app(options: { keySecret?: string } = {}) {
  const redis = new Redis(url);
  const seen: string[] = [];
  // A command that arrives with the answer to MONITOR confuses ioredis.
  await redis.ping();
  const monitor = await redis.duplicate().monitor();
  monitor.on("monitor", (_time: string, args: unknown[]) => seen.push(inspect(args, { maxStringLength: null, maxArrayLength: null })));
  const rules = await fileRules(file);
  const served = express().set("trust proxy", 1);
  served.use(
    rateLimit<express.Request, express.Response, "session">({
      ...options,
      rules,
      store: redisStore(redis, { denyCache: false }),
      keys: { session: (req) => req.get("x-session") },
      timeoutMs: 10_000,
      onEvent: (event: FloodgateEvent) => seen.push(inspect(event, { depth: 10, maxStringLength: null })),
    }),
  );
  served.use((_req, res) => void res.sendStatus(204));
  return {
    seen,
    get: async (headers: Record<string, string>) =>
      (
        await supertest(served)
          .get("/")
          .set({ "x-forwarded-for": "203.0.113.9", ...headers })
      ).status,
    /** All keys in Redis and their values. */
    stored: async () => {
      const keys = await redis.keys("*");
      const values = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
      return [...keys, ...values.map((value) => value?.toString("latin1") ?? "")];
    },
    close: async () => {
      await rules.close();
      monitor.disconnect();
      redis.disconnect();
    },
  };
}

describe.each([
  ["SHA-256", {}],
  ["an HMAC", { keySecret }],
])("a secret key, digested by %s", (_, options: { keySecret?: string }) => {
  beforeEach(() => {
    if (options.keySecret !== undefined) vi.stubEnv("FLOODGATE_KEY_SECRET", options.keySecret);
  });

  it("appears nowhere in Redis, in commands to Redis, in events, or in output", async () => {
    const { get, seen, stored, close } = await app(options);
    const headers = { "x-api-key": secret, "x-session": `${secret}-session` };
    const statuses = [await get(headers), await get(headers)];
    expect(statuses).toEqual([204, 429]);

    const printed: Ended[] = [];
    for (const json of [[], ["--json"]]) {
      for (const name of ["status", "reset"]) {
        printed.push(await command(name, "--rule", "partners", "--key", secret, ...json));
        printed.push(await command(name, "--rule", "sessions", "--key", "203.0.113.9", "--key", `${secret}-session`, ...json));
      }
    }
    expect(printed.map(({ code }) => code)).toEqual(printed.map(() => 0));
    await get(headers);
    const all = [...seen, ...(await stored()), ...printed.flatMap(({ out, err }) => [out, err])];
    await close();
    expect(seen.length).toBeGreaterThan(10);
    expect(all.filter((text) => text.includes(secret))).toEqual([]);
    expect(digestIn(all.join("\n"))).not.toBe("none");
  });

  it("can be given as the key itself or as its printed digest", async () => {
    const { get, close } = await app(options);
    for (const isDigest of [false, true]) {
      expect([await get({ "x-api-key": secret }), await get({ "x-api-key": secret })]).toEqual([204, 429]);
      const shown = await command("status", "--rule", "partners", "--key", secret);
      const digest = digestIn(shown.out);
      expect(shown).toMatchObject({ code: 0, out: expect.stringMatching(/^partners, key secret:[0-9a-f]{64}: blocked\n/) });
      const key = isDigest ? digest : secret;
      expect((await command("status", "--rule", "partners", "--key", key)).out).toMatch(/ 1 of 1 /);
      expect(await command("reset", "--rule", "partners", "--key", key)).toMatchObject({ code: 0, err: expect.any(String) });
    }
    expect(await get({ "x-api-key": secret })).toBe(204);
    await close();
  });
});

it("a key digested with a `keySecret` is not found without it, and the command says so", async () => {
  const { get, close } = await app({ keySecret });
  expect([await get({ "x-api-key": secret }), await get({ "x-api-key": secret })]).toEqual([204, 429]);
  const ask = ["--rule", "partners", "--key", secret];
  const without = await command("status", ...ask);
  expect(without.out).toMatch(/: not limited\n/);
  expect(without.err).toBe(
    "floodgate: FLOODGATE_KEY_SECRET is not set, so the key's plain digest is looked up. Set it if the app has a `keySecret`.\n",
  );
  vi.stubEnv("FLOODGATE_KEY_SECRET", keySecret);
  const found = await command("status", ...ask);
  expect(found).toMatchObject({ code: 0, out: expect.stringMatching(/: blocked\n/), err: "" });
  vi.stubEnv("FLOODGATE_KEY_SECRET", "");
  expect(await command("status", "--rule", "partners", "--key", digestIn(found.out))).toMatchObject({
    out: expect.stringMatching(/: blocked\n/),
    err: "",
  });
  vi.stubEnv("FLOODGATE_KEY_SECRET", "short of 32");
  expect(await command("status", ...ask)).toEqual({
    code: 64,
    out: "",
    err: "floodgate: FLOODGATE_KEY_SECRET must have at least 32 characters, but has 11. Set it to the app's `keySecret`.\n",
  });
  await close();
});

it("--ip alone names a client that is counted by its address because its key is missing", async () => {
  const { get, close } = await app();
  expect([await get({}), await get({}), await get({ "x-api-key": "203.0.113.9" })]).toEqual([204, 429, 204]);
  const freed = await command("reset", "--rule", "partners", "--ip", "203.0.113.9");
  expect(freed.out).toMatch(/^Before: partners, key missing-key-ip:203\.0\.113\.9: blocked\n/);
  expect(await get({})).toBe(204);
  await close();
});

it.each([
  [["--request", "GET /", "--header", `x-api-key ${secret}`], 64],
  [["--request", "GET /", "--key", secret], 64],
  [["--request", "GET /", "--key", `session=${secret}`, "--header", `X-API-Key: ${secret}`, "--ip", "203.0.113.9"], 0],
  [["--request", "GET /", "--key", `session=${secret}`, "--header", `X-API-Key: ${secret}`, "--json"], 0],
])("check prints no secret: %o", async (args, code) => {
  const checked = await floodgate(["check", file, ...args]);
  expect(checked.code).toBe(code);
  expect(checked.out + checked.err).not.toContain(secret);
  if (code === 0) expect(checked.out).toContain("secret:");
});
