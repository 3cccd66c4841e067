import { createLimiter, fixedWindow, slidingWindowLog } from "@floodgate/core";
import { rateLimit } from "@floodgate/express";
import { fileRules } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import express from "express";
import { Redis } from "ioredis";
import supertest from "supertest";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

const { write } = tempFolder();
const file = write(
  "limits.yaml",
  `exempt: { ips: [198.51.100.7] }
rules:
  - { name: posts, match: { method: POST, path: /posts }, key: user, policy: { algorithm: fixed-window, limit: 1, window: 365d }, plans: { pro: { limit: 5 } } }
  - { name: imports, match: { path: /import }, key: global, cost: 3, policy: { algorithm: fixed-window, limit: 5, window: 365d } }
  - { name: tries, match: { path: /login }, key: ip, policy: { algorithm: sliding-window-log, limit: 1, window: 1h }, ban: { after: 1, within: 1h, for: 1d } }
  - { name: closed, match: { path: /closed }, key: global, limit: 0, window: 1m }
  - { name: tokens, match: { path: /api }, key: header:x-api-key, onMissingKey: reject, limit: 10, window: 1h }
  - { name: pairs, match: { path: /pairs }, key: [ip, user], policy: { algorithm: fixed-window, limit: 1, window: 365d }, mode: shadow }
`,
);

let server: RedisServer;
let redis: Redis;
let client: ReturnType<typeof supertest>;
let rules: Awaited<ReturnType<typeof fileRules>>;
let limit: ReturnType<typeof rateLimit>;
beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port, server.host);
  const app = express();
  rules = await fileRules(file);
  limit = rateLimit({
    rules,
    store: redisStore(redis, { denyCache: false }),
    timeoutMs: 10_000,
    keys: { user: (req) => req.get("x-user") },
    plan: (req) => req.get("x-plan"),
    // The limit of 0 is meant, so its warning is not printed.
    onEvent: () => undefined,
    clientIp: (req) => req.get("x-client"),
  });
  app.use(limit, (_req, res) => void res.end());
  client = supertest(app);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  limit.close();
  await rules.close();
  redis.disconnect();
  await server.stop();
});

/** Sends requests, and returns the status of the last one. */
async function sends(times: number, path: string, headers: Record<string, string>): Promise<number> {
  let status = 0;
  for (let i = 0; i < times; i++) ({ status } = await client.post(path).set({ "x-client": "203.0.113.9", ...headers }));
  return status;
}

async function why(...args: string[]): Promise<string[]> {
  const { code, out, err } = await floodgate(["why", ...args, "--file", file, "--redis", `redis://${server.host}:${server.port}`]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out.replace(/ {2,}/g, "  ").trimEnd().split("\n");
}

describe("why --request", () => {
  const ip = ["--ip", "203.0.113.9"];

  it.each<[string, () => Promise<unknown>, string[], string | RegExp, string | RegExp]>([
    [
      "a request that passes",
      async () => 0,
      ["/posts", "--key", "user=42"],
      "would pass",
      "posts  42  1 per 365d, fixed-window  0 of 1  1  passes",
    ],
    [
      "a used-up limit",
      () => sends(1, "/posts", { "x-user": "42" }),
      ["/posts", "--key", "user=42"],
      /^would be rejected with 429 by posts. It would pass in \w+/,
      /^posts {2}42 {2}1 per 365d, fixed-window {2}1 of 1 {2}1 {2}rejects, for \w+/,
    ],
    [
      "the same client under another plan",
      () => sends(1, "/posts", { "x-user": "42" }),
      ["/posts", "--key", "user=42", "--plan", "pro"],
      "would pass",
      "posts  42  5 per 365d, fixed-window  1 of 5  1  passes",
    ],
    [
      "a cost above what is left",
      () => sends(1, "/import", {}),
      ["/import"],
      "would be rejected with 429 by imports",
      "imports  global  5 per 365d, fixed-window  3 of 5  3  rejects: 2 left for a cost of 3",
    ],
    [
      "a ban",
      () => sends(2, "/login", {}),
      ["/login"],
      /^would be rejected with 429 by tries. It would pass in (?:1d|24h|23h)/,
      /^tries {2}203.0.113.9 {2}1 per 1h, sliding-window-log {2}1 of 1 {2}1 {2}rejects: banned, for/,
    ],
    ["a limit of 0", async () => 0, ["/closed"], "would be rejected with 429 by closed, for ever", /closed.*rejects, for ever$/],
    ["a missing key", async () => 0, ["/api"], "would be rejected with 429 by tokens, because its key is missing", /^tokens {2}no key/],
    [
      "a shadow rule",
      () => sends(1, "/pairs", { "x-user": "42" }),
      ["/pairs", "--key", "user=42"],
      "would pass",
      /^pairs {2}\(203.0.113.9,42\).*would reject \(shadow\), for/,
    ],
    ["an exempt client", async () => 0, ["/posts", "--key", "user=42", "--ip", "198.51.100.7"], "would pass", "posts  exempt"],
    ["a rule for another path", async () => 0, ["/posts", "--key", "user=42"], "would pass", "closed  path: the rule matches /closed"],
  ])("explains %s, as the app decides it", async (_case, before, [path = "", ...args], verdict, row) => {
    await before();
    const lines = await why("--request", `POST ${path}`, ...ip, ...args);
    const told = lines[0]?.replace(/^POST \S+: /, "");
    expect(told).toEqual(typeof verdict === "string" ? verdict : expect.stringMatching(verdict));
    expect(lines.map((line) => line.trim())).toContainEqual(typeof row === "string" ? row : expect.stringMatching(row));
    const headers: Record<string, string> = path === "/posts" || path === "/pairs" ? { "x-user": "42" } : {};
    if (args.includes("pro")) headers["x-plan"] = "pro";
    if (args.includes("198.51.100.7")) headers["x-client"] = "198.51.100.7";
    expect(await sends(1, path, headers)).toBe(told === "would pass" ? 200 : 429);
  });

  it("prints JSON", async () => {
    await sends(1, "/posts", { "x-user": "42" });
    const { rules, verdict } = JSON.parse((await why("--request", "POST /posts", "--key", "user=42", "--json")).join("\n"));
    expect(verdict).toMatch(/^would be rejected with 429 by posts/);
    expect(rules[0]).toMatchObject({ rule: "posts", says: "limited", key: "42", cost: 1, limit: 1, used: 1, remaining: 0, blocked: null });
    expect(rules[3]).toMatchObject({ rule: "closed", says: "passes", why: "path: the rule matches /closed" });
  });
});

test("why --request, why --key and status show the same use of a key in debt: the whole limit", async () => {
  const posts = limit.limiters.get("posts") as NonNullable<ReturnType<typeof limit.limiters.get>>;
  await posts.settle("42", await posts.consume("42"), 4);
  const used = "1 of 1";
  const request = await why("--request", "POST /posts", "--key", "user=42");
  expect(request.join("\n")).toContain(used);
  expect((await why("--key", "42")).join("\n")).toContain(used);
  const redisUrl = `redis://${server.host}:${server.port}`;
  const { out } = await floodgate(["status", "--rule", "posts", "--key", "42", "--file", file, "--redis", redisUrl]);
  expect(out).toContain(used);
});

describe("why --key and why --ip", () => {
  it("list every limit that holds something of a client, in rules and in code, alone or as a part of a key", async () => {
    await sends(2, "/posts", { "x-user": "42" });
    await sends(1, "/pairs", { "x-user": "42" });
    await sends(1, "/posts", { "x-user": "43" });
    const store = redisStore(redis);
    const code = createLimiter({ name: "exports", policy: fixedWindow({ limit: 1, window: "1h" }), store, timeoutMs: 10_000 });
    await code.consume("42");
    await code.block("42", "2h");
    await createLimiter({ name: "mails", policy: slidingWindowLog({ limit: 9, window: "1h" }), store, timeoutMs: 10_000 }).consume("42");
    const [told, facts] = (await why("--key", "42"))
      .map((line) => line.trim().replace(/in \d.*$/, "in ..."))
      .join("\n")
      .split("\n\n");
    expect(facts?.split("\n")).toEqual([
      "limit  because  what frees it now",
      "exports  blocked by hand  floodgate unblock --rule exports --key 42 --policy 'fixed-window <limit>/3600s'",
      "posts  used up under some plans  floodgate reset --rule posts --key 42 or floodgate grant --rule posts --key 42 --plan pro --for 30d",
      "mails  perhaps used up: floodgate status, with the same options, shows it  floodgate reset --rule mails --key 42 --policy 'sliding-window-log <limit>/3600s'",
    ]);
    expect(told?.split("\n")).toEqual([
      "42: its next request is rejected by exports, and under some plans by posts, and perhaps by mails",
      "limit  key  state  used  next allowed",
      "exports (in code)  42  blocked  ?  in ...",
      "posts  42  some plans  1 of 1  in ...",
      "mails (in code)  42  ?  ?  ?",
      "pairs  (203.0.113.9,42)  would be limited  1 of 1  now",
    ]);
    const other = createLimiter({ name: "others", policy: fixedWindow({ limit: 1, window: "1h" }), store, timeoutMs: 10_000 });
    await other.consume("45");
    expect((await why("--key", "45"))[0]).toBe("45: its next request may be rejected by others");
    expect(await why("--key", "44")).toEqual([
      "Redis holds nothing of 44. No limit has counted it since its last reset, and no block is in force.",
    ]);
  });

  it("take an address in any notation, and find clients that are counted by it because their key is missing", async () => {
    await sends(1, "/posts", { "x-client": "2001:db8:0:1::1" });
    const [told, , row] = await why("--ip", "2001:0DB8::1:0:0:0:1");
    expect(told).toBe("2001:0DB8::1:0:0:0:1: its next request is rejected under some plans by posts");
    expect(row?.trim()).toMatch(/^posts {2}missing-key-ip:2001:db8::\/56 {2}some plans {2}1 of 1 {2}in /);
  });

  it("refuse what is no address", async () => {
    expect(await floodgate(["why", "--ip", "203.0.113.999", "--redis", "redis://127.0.0.1:1"])).toEqual({
      code: 64,
      out: "",
      err: 'floodgate: "203.0.113.999" is not an IP address. Write 203.0.113.9 or 2001:db8::1.\n',
    });
  });

  it("need a key, an address or a request", async () => {
    expect(await floodgate(["why", "--redis", "redis://127.0.0.1:1"])).toEqual({
      code: 64,
      out: "",
      err: 'floodgate: say who: --key 42, --ip 203.0.113.9, or --request "POST /posts".\n',
    });
  });
});
