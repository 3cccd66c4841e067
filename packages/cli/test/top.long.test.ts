import { createLimiter, fixedWindow, slidingWindowCounter } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startCluster, startRedis } from "@floodgate/test-servers";
import { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { floodgate } from "./command.js";
import { limits, tempFolder } from "./files.js";
import { startFloodgate } from "./process.js";

const { write } = tempFolder();
const file = write("limits.yaml", limits);

let server: RedisServer;
let url: string;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  url = `redis://${server.host}:${server.port}`;
  redis = new Redis(url);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const command = (...args: string[]) => floodgate([...args, "--redis", url]);
const policy = fixedWindow({ limit: 1, window: "365d" });
const limiterOf = (name: string, options: { prefix?: string } = {}) =>
  createLimiter({ name, policy, store: redisStore(redis, options), timeoutMs: 10_000 });

/** ann has used up "posts", and pro users of it have 4 left; "in code" has counts and a block. */
async function traffic(): Promise<void> {
  const posts = limiterOf("posts");
  await posts.consume("ann");
  const code = limiterOf("in code");
  await code.consume("}%7D:{a}");
  await code.consume("eve");
  await code.block("eve", "2h");
}

describe("rules", () => {
  it("lists the rules in Redis, and the limits that an app defines in its code", async () => {
    await command("push", file);
    await traffic();
    const { code, out } = await command("rules");
    expect(code).toBe(0);
    expect(out.replace(/ {2,}/g, "  ").split("\n")).toEqual([
      "floodgate:rules: version 1, 3 rules",
      "  rule  matches  by  policy  cost  mode  and",
      "  posts  POST /posts  user  1 per 365d, fixed-window  1  enforce  plans: pro",
      "  per-ip  all requests  ip  2 per 365d, sliding-window-counter  1  enforce  ban of 1d after 2 rejections within 1h",
      "  login  POST /login with x-app: web or ios  ip, user  5 per 15m, sliding-window-counter  1  shadow",
      "",
      "Limits that an app defines in its code",
      "  limit  keys",
      "  in code  2",
      "",
    ]);
    expect(JSON.parse((await command("rules", "--json")).out)).toMatchObject({
      name: "floodgate:rules",
      version: "1",
      rules: [{ name: "posts" }, { name: "per-ip" }, { name: "login" }],
      limitsInCode: [{ name: "in code", keys: 2 }],
      more: false,
    });
  });

  it("needs no Redis for a file", async () => {
    const { code, out } = await floodgate(["rules", "--file", file]);
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining("limits.yaml: 3 rules\n") });
  });

  it("says that there are no rules, and lists what is defined in code all the same", async () => {
    expect(await command("rules")).toMatchObject({ code: 1, err: expect.stringContaining("Push some rules (floodgate push limits.yaml)") });
    await traffic();
    expect((await command("rules")).out).toMatch(/^floodgate:rules: no rules\n\nLimits that an app defines in its code\n.*limit/);
  });
});

describe("top", () => {
  it("shows who is blocked, who has nothing left under some plans, and who still has something", async () => {
    await traffic();
    const { code, out } = await command("top", "--once", "--file", file);
    expect(code).toBe(0);
    expect(out).toMatch(/^\d{4}-\d\d-\d\d .*, 3 keys in Redis\n/);
    const [, summary, keys] = /\n( {2}limit[\s\S]*?)\n\n([\s\S]*)$/.exec(out) as unknown as string[];
    expect(summary?.replace(/ {2,}/g, " ").split("\n")).toEqual([
      " limit keys limited blocked",
      " posts 1 0 0",
      " per-ip 0 0 0",
      " login 0 0 0",
      " in code (in code) 2 ? 1",
    ]);
    const rows = keys?.replace(/ {2,}/g, "  ").split("\n");
    expect(rows).toEqual([
      "  limit  key  state  used  next allowed",
      expect.stringMatching(/^ {2}in code \(in code\) {2}eve {2}blocked {2}\? {2}in (2h|1h 59m)/),
      expect.stringMatching(/^ {2}posts {2}ann {2}some plans {2}1 of 1 {2}in /),
      "  in code (in code)  }%7D:{a}  ?  ?  ?",
      "  ?: only the app knows this limit. With --policy, floodgate status shows one of its keys",
      "",
    ]);
  });

  it("prints JSON with durations in milliseconds, and no more rows than asked for", async () => {
    await traffic();
    const { out } = await command("top", "--once", "--json", "--rows", "2", "--file", file);
    expect(JSON.parse(out)).toMatchObject({
      atMs: expect.any(Number),
      limits: expect.arrayContaining([{ name: "in code", inCode: true, keys: 2, limited: 0, blocked: 1 }]),
      keys: [
        { name: "in code", key: "eve", state: "blocked", used: null, limit: null, retryAfterMs: expect.any(Number) },
        { name: "posts", key: "ann", state: "some plans", used: 1, limit: 1 },
      ],
      more: false,
    });
  });

  it("says of each key what status says of it", async () => {
    await traffic();
    const login = createLimiter({
      name: "login",
      policy: slidingWindowCounter({ limit: 5, window: "15m" }),
      store: redisStore(redis),
      timeoutMs: 10_000,
    });
    await login.consume(["192.0.2.1", "ann"], { cost: 5 });
    const perIp = createLimiter({
      name: "per-ip",
      policy: slidingWindowCounter({ limit: 2, window: "365d" }),
      store: redisStore(redis),
      timeoutMs: 10_000,
    });
    await perIp.consume("192.0.2.2", { cost: 2 });
    await perIp.consume("192.0.2.3");
    await perIp.block("192.0.2.4", "2h");
    const { keys } = JSON.parse((await command("top", "--once", "--json", "--file", file)).out) as {
      keys: { name: string; key: string; state: string }[];
    };
    const told: string[] = [];
    for (const { name, key, state } of keys.filter(({ name }) => name !== "in code")) {
      const { out } = await command(
        "status",
        "--rule",
        name,
        ...(name === "login" ? ["--ip", "192.0.2.1", "--key", "ann"] : ["--key", key]),
        "--file",
        file,
      );
      told.push(`${key}: ${state}: ${out.slice(out.indexOf(": ") + 2, out.indexOf("\n"))}`);
    }
    expect(told.sort()).toEqual([
      "(192.0.2.1,ann): would be limited: would be limited",
      "192.0.2.2: limited: limited",
      "192.0.2.3: open: not limited",
      "192.0.2.4: blocked: blocked",
      "ann: some plans: limited under some plans",
    ]);
  });

  it("shows a key that a shadow rule would limit as one whose requests pass, and says how many keys are not shown", async () => {
    const login = createLimiter({
      name: "login",
      policy: slidingWindowCounter({ limit: 5, window: "15m" }),
      store: redisStore(redis),
      timeoutMs: 10_000,
    });
    for (const key of ["ann", "eve"]) await login.consume(key, { cost: 5 });
    const { out } = await command("top", "--once", "--rows", "1", "--file", file);
    expect(out).toMatch(/\n {2}login +2 +0 +0\n/);
    expect(out).toMatch(/\n {2}login +ann +would be limited +5 of 5 +now\n {2}and 1 more: --rows 2 shows all\n$/);
    expect(JSON.parse((await command("top", "--once", "--json", "--rows", "1", "--file", file)).out)).toMatchObject({ keysLeftOut: 1 });
  });

  it("sees a limited key, and one under another prefix", async () => {
    const mine = limiterOf("a", { prefix: "my?*app" });
    await mine.consume("ann");
    const rules = write("a.yaml", "rules: [{ name: a, key: user, policy: { algorithm: fixed-window, limit: 1, window: 365d } }]\n");
    const { out } = await command("top", "--once", "--json", "--prefix", "my?*app", "--file", rules);
    expect(JSON.parse(out)).toMatchObject({ limits: [{ name: "a", keys: 1, limited: 1 }], keys: [{ key: "ann", state: "limited" }] });
    expect(JSON.parse((await command("top", "--once", "--json", "--file", rules)).out).keys).toEqual([]);
  });

  it("looks at no more keys than asked for, and skips foreign values", async () => {
    await traffic();
    expect(JSON.parse((await command("top", "--once", "--json", "--sample", "2")).out)).toMatchObject({ more: true });
    await redis.lpush("floodgate:{x}:posts:fw-31536000000", "foreign");
    await redis.set("floodgate:{x}", "foreign");
    const { code, out } = await command("top", "--once", "--json", "--file", file);
    expect(code).toBe(0);
    expect(JSON.parse(out).limits[0]).toMatchObject({ name: "posts", keys: 2, limited: 0 });
  });

  it("skips foreign values of limits that are defined in code", async () => {
    await traffic();
    await redis.lpush("floodgate:{x}:elsewhere:blocks", "foreign");
    await redis.lpush("floodgate:{x}:elsewhere:fw-60000", "foreign");
    const { code, out } = await command("top", "--once", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(out).limits).toContainEqual({ name: "elsewhere", inCode: true, keys: 1, limited: 0, blocked: 0 });
  });

  it("shows control characters of hostile keys as replacement characters", async () => {
    await redis.set("floodgate:{\u001b[2Jann\n}:evil\u001b[31m:fw-60000", "1");
    const { code, out } = await command("top", "--once");
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining("1 key in Redis\n") });
    expect(out).toMatch(/evil\ufffd\[31m \(in code\) {2}\ufffd\[2Jann\ufffd {2}\? {2}/);
  });

  it("says what a user of Redis without SCAN needs", async () => {
    await redis.acl("SETUSER", "weak", "on", ">p", "~*", "+@all", "-scan");
    const weak = ["--redis", url.replace("redis://", "redis://weak:p@")];
    const expected = { code: 2, out: "", err: expect.stringContaining("Allow it: ACL SETUSER <user> +scan") };
    expect(await floodgate(["top", "--once", ...weak])).toEqual(expected);
    expect(await floodgate(["rules", ...weak])).toEqual(expected);
  });

  it("goes on until it is interrupted", async () => {
    await traffic();
    const running = startFloodgate(["top", "--every", "10ms", "--json", "--file", file, "--redis", url]);
    await running.printed('"eve"');
    await limiterOf("in code").unblock("eve");
    await running.printed('"blocked": 0');
    running.stop("SIGINT");
    expect((await running.ended).code).toBe(0);
  });
});

test("status, reset, block and unblock act on a limit that is defined in code, if its policy is given", async () => {
  await traffic();
  const ask = ["--rule", "in code", "--key", "eve", "--file", file];
  expect(await command("status", ...ask)).toMatchObject({ code: 64, err: expect.stringContaining("If the limit is defined in code") });
  const withPolicy = [...ask, "--policy", "fixed-window 1/365d"];
  expect((await command("status", ...withPolicy)).out).toMatch(/^in code, key eve: blocked\n.*\n.*1 of 1/);
  expect((await command("unblock", ...withPolicy)).code).toBe(0);
  expect((await command("reset", ...withPolicy)).out).toMatch(/After: in code, key eve: not limited\n.*\n.*0 of 1/);
  const parts = createLimiter({ name: "pair", policy, store: redisStore(redis), timeoutMs: 10_000 });
  await parts.consume(["192.0.2.1", "ann"]);
  const { out } = await command("status", "--rule", "pair", "--ip", "192.0.2.1", "--key", "ann", "--policy", "fixed-window 1/365d");
  expect(out).toMatch(/^pair, key \(192\.0\.2\.1,ann\): limited\n/);
});

test("rules and top see the keys of all nodes of a Cluster", async () => {
  const nodes = await startCluster({ replicasPerMaster: 0 });
  const [{ host, port }] = nodes.nodes as unknown as [RedisServer];
  const client = new Cluster([{ host, port }]);
  try {
    const limiter = createLimiter({ name: "spread", policy, store: redisStore(client), timeoutMs: 10_000 });
    for (let i = 0; i < 20; i++) await limiter.consume(i);
    const { out } = await floodgate(["rules", "--json", "--cluster", "--redis", `redis://${host}:${port}`]);
    expect(JSON.parse(out).limitsInCode).toEqual([{ name: "spread", keys: 20 }]);
    // One node has only some of the keys.
    for (const [name, ...args] of [["rules"], ["top", "--once"]] as const) {
      const { code, err } = await floodgate([name, ...args, "--redis", `redis://${host}:${port}`]);
      expect({ code, err }).toMatchObject({ code: 2, err: expect.stringContaining("Add --cluster.") });
    }
  } finally {
    client.disconnect();
    await nodes.stop();
  }
});
