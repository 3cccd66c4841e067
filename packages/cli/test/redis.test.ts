import {
  calendarWindow,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Key,
  leakyBucket,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { encodeKey } from "@floodgate/core/store";
import { rateLimit } from "@floodgate/express";
import { fileRules } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import express from "express";
import { Redis } from "ioredis";
import supertest from "supertest";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { floodgate } from "./command.js";
import { limits, tempFolder } from "./files.js";

const { write, path } = tempFolder();
const file = write("limits.yaml", limits);

let server: RedisServer;
let url: string;
beforeAll(async () => {
  server = await startRedis();
  url = `redis://${server.host}:${server.port}/1`;
});
beforeEach(() => server.command("FLUSHALL"));
afterAll(() => server.stop());

const command = (name: string, ...args: string[]) => floodgate([name, ...args, "--redis", url]);

describe("rules in Redis", () => {
  it("are pushed and pulled unchanged, with a new version for each push", async () => {
    const printed = `${file}: 3 rules, no problems\nfloodgate:rules: version`;
    expect(await command("push", file)).toEqual({ code: 0, out: `${printed} 1\n`, err: "" });
    expect(await command("push", file)).toEqual({ code: 0, out: `${printed} 2\n`, err: "" });
    expect(await command("pull")).toEqual({ code: 0, out: limits, err: "floodgate:rules: version 2\n" });
  });

  it("are pulled into a file", async () => {
    await command("push", file, "--rules-key", "other");
    const output = path("pulled.yaml");
    expect(await command("pull", "--rules-key", "other", "--output", output)).toEqual({ code: 0, out: "", err: "other: version 1\n" });
    expect((await floodgate(["check", output])).out).toBe(`${output}: 3 rules, no problems\n`);
    const { code, err } = await command("pull", "--rules-key", "other", "--output", path(""));
    expect({ code, err }).toMatchObject({ code: 74, err: expect.stringContaining("cannot be written") });
  });

  it("are pushed and pulled as JSON with --json", async () => {
    const key = "floodgate:rules";
    const pushed = JSON.parse((await command("push", file, "--json")).out);
    expect(pushed).toEqual({ file, rules: 3, problems: [], key, version: "1" });
    const { out, err } = await command("pull", "--json");
    expect(JSON.parse(out)).toEqual({ key, version: "1", text: limits });
    expect(err).toBe("");
    const output = path("pulled-json.yaml");
    expect(JSON.parse((await command("pull", "--json", "--output", output)).out)).toEqual({ key, version: "1", file: output });
    expect((await floodgate(["check", output])).code).toBe(0);
  });

  it.each([
    ["check", "bad.yaml"],
    ["simulate", "access.log", "--rules", "bad.yaml"],
    ["push", "bad.yaml"],
    ["rules", "--file", "bad.yaml"],
    ["top", "--once", "--file", "bad.yaml"],
    ["why", "--request", "GET /", "--file", "bad.yaml"],
    ...["status", "reset", "unblock"].map((name) => [name, "--rule", "posts", "--key", "42", "--file", "bad.yaml"]),
  ])("have their problems printed as JSON with --json: %s", async (...args) => {
    const bad = write("bad.yaml", limits.replace("limit: 5", "limit: -1"));
    const log = write("access.log", '192.0.2.1 - - [21/Nov/2026:14:03:05 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n');
    const given = args.map((arg) => (arg === "bad.yaml" ? bad : arg === "access.log" ? log : arg));
    const needsRedis = !["check", "simulate"].includes(args[0] ?? "");
    const { code, out } = await floodgate([...given, "--json", ...(needsRedis ? ["--redis", url] : [])]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toEqual({ file: bad, rules: null, problems: [expect.objectContaining({ line: expect.any(Number) })] });
  });

  it("are not overwritten with --if-version if somebody else has pushed", async () => {
    expect((await command("push", file, "--if-version", "0")).code).toBe(0);
    expect(await command("push", file, "--if-version", "0")).toEqual({
      code: 1,
      out: "",
      err: "floodgate: floodgate:rules is at version 1, not 0: somebody else has pushed. Pull the rules, make your change again, and push with --if-version 1.\n",
    });
    expect((await command("push", file, "--if-version", "1")).code).toBe(0);
  });

  it.each([
    [["SET", "floodgate:rules", "x"], "pull"],
    [["SET", "floodgate:rules", "x"], "push"],
    [["HSET", "floodgate:rules", "version", "abc"], "push"],
  ])("are not read from or written to a foreign value: %j, %s", async (foreign, name) => {
    await server.command("SELECT", 1);
    await server.command(...foreign);
    const { code, err } = await command(name, ...(name === "push" ? [file] : []));
    expect({ code, err }).toMatchObject({ code: 1, err: expect.stringContaining("Use another key, or delete it") });
  });

  it("are not pushed if they are invalid", async () => {
    const { code, out } = await command("push", write("bad.yaml", limits.replace("limit: 5", "limit: -1")));
    expect(code).toBe(1);
    expect(out).toMatch(/bad\.yaml:\d+:\d+: .*limit/);
    expect(await command("pull")).toMatchObject({ code: 1, err: expect.stringContaining("there are no rules under floodgate:rules") });
  });

  it("are missing where all limits are in code, and status says what to write", async () => {
    const { code, err } = await command("status", "--rule", "api", "--key", "42");
    expect({ code, err }).toMatchObject({
      code: 1,
      err: expect.stringContaining("If the limit is defined in code, say its policy: --policy"),
    });
  });

  it("are checked by status, and their problems printed", async () => {
    await server.command("SELECT", 1);
    await server.command("HSET", "floodgate:rules", "version", 1, "rules", "rules:\n  - { name: a, limit: -1, window: 1m }\n");
    const { code, out } = await command("status", "--rule", "a", "--key", "::1");
    expect(code).toBe(1);
    expect(out).toMatch(/^floodgate:rules:2:\d+: /);
  });
});

describe("a blocked key", () => {
  const status = (...args: string[]) => command("status", "--file", file, ...args);
  const reset = (...args: string[]) => command("reset", "--file", file, ...args);
  const block = (...args: string[]) => command("block", "--file", file, ...args);
  const unblock = (...args: string[]) => command("unblock", "--file", file, ...args);

  async function app() {
    const redis = new Redis(url);
    const rules = await fileRules(file);
    const served = express().set("trust proxy", 1);
    const store = redisStore(redis, { denyCache: false });
    const keys = { user: (req: express.Request) => req.get("x-user") };
    served.use(
      rateLimit<express.Request, express.Response, "user">({ rules, store, keys, plan: (req) => req.get("x-plan"), timeoutMs: 10_000 }),
    );
    served.use((_req, res) => void res.sendStatus(204));
    return {
      post: async (user: string, ip: string, plan = "free") =>
        (await supertest(served).post("/posts").set({ "x-user": user, "x-forwarded-for": ip, "x-plan": plan })).status,
      close: async () => {
        await rules.close();
        redis.disconnect();
      },
    };
  }

  it("is shown for each plan, and reset", async () => {
    const { post, close } = await app();
    expect([await post("ann", "192.0.2.1"), await post("ann", "192.0.2.2")]).toEqual([204, 429]);

    const { code, out } = await status("--rule", "posts", "--key", "ann");
    expect(code).toBe(0);
    expect(out).toMatch(/^posts, key ann: limited under some plans\n/);
    expect(out).toMatch(/\(others\) +1 per 365d, fixed-window +1 of 1 +0 +in \d.*, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d /);
    expect(out).toMatch(/pro +5 per 365d, fixed-window +1 of 5 +4 +now +in /);
    const pro = await status("--rule", "posts", "--key", "ann", "--plan", "pro");
    expect(pro.out).toMatch(/^posts, key ann: not limited\n/);
    expect(pro.out).not.toContain("(others)");
    expect((await status("--rule", "posts", "--key", "bob")).out).toMatch(/^posts, key bob: not limited\n/);

    const freed = await reset("--rule", "posts", "--key", "ann");
    expect(freed.out).toMatch(/^Before: posts, key ann: limited under some plans\n[\s\S]*\nAfter: posts, key ann: not limited\n/);
    expect(await post("ann", "192.0.2.3")).toBe(204);
    await close();
  });

  it("is reset even if it holds a foreign value", async () => {
    await server.command("SELECT", 1);
    const foreign = () => server.command("LPUSH", "floodgate:{43}:posts:fw-31536000000", "x");
    const ask = ["--rule", "posts", "--key", "43"];
    await foreign();
    expect(await status(...ask)).toMatchObject({ code: 1, err: expect.stringContaining("holds a value of another type") });
    const { out: why } = await command("why", "--file", file, "--key", "43");
    expect(why).toMatch(/^43: its next request may be rejected by posts\n[\s\S]* floodgate reset --rule posts --key 43\n/);
    const freed = await reset(...ask);
    expect(freed).toMatchObject({ code: 0, err: "" });
    expect(freed.out).toMatch(
      /^Before: posts, key 43: unknown, because the key held a value that is not a limit's state\n\nAfter: posts, key 43: not limited\n/,
    );
    await foreign();
    expect(JSON.parse((await reset(...ask, "--json")).out)).toMatchObject({ before: null, after: { key: "43" } });
    expect(await status(...ask)).toMatchObject({ code: 0 });
  });

  it.each([
    ["fixed-window of 365d", "fixed-window <limit>/31536000s", fixedWindow({ limit: 3, window: "365d" })],
    [
      "sliding-window-counter of 1m in 6 parts",
      "sliding-window-counter <limit>/60s buckets=6",
      slidingWindowCounter({ limit: 3, window: "1m", buckets: 6 }),
    ],
    ["sliding-window-log of 1m", "sliding-window-log <limit>/60s", slidingWindowLog({ limit: 3, window: "1m" })],
    ["token-bucket smooth of 10m", "token-bucket <capacity> <units>/600s", tokenBucket({ capacity: 3, refill: 1, every: "10m" })],
    [
      "token-bucket interval of 10m",
      "token-bucket interval <capacity> <units>/600s",
      tokenBucket({ capacity: 3, refill: 1, every: "10m", style: "interval" }),
    ],
    ["leaky-bucket of 1d", "leaky-bucket <capacity> <units>/86400s", leakyBucket({ capacity: 3, leak: 1, every: "1d" })],
    ["gcra of 1h", "gcra <limit>/3600s", gcra({ limit: 3, window: "1h" })],
  ])("is not shown, reset or blocked under a policy that it is not counted by: %s", async (kind, advice, policy) => {
    const redis = new Redis(url);
    const limiter = createLimiter({ name: `in code ${kind}`, policy, store: redisStore(redis, { denyCache: false }), timeoutMs: 10_000 });
    for (let i = 0; i < 4; i++) await limiter.consume("ann");
    const unsaid = await status("--rule", limiter.name, "--key", "ann");
    expect(unsaid.err).toContain(`If the limit is defined in code, say its policy: --policy '${advice}'.`);
    const ask = ["--rule", limiter.name, "--key", "ann", "--policy", "fixed-window 3/7m"];
    for (const answer of [await status(...ask), await reset(...ask), await block(...ask, "--for", "1h")]) {
      expect(answer).toMatchObject({ code: 1, out: "" });
      expect(answer.err).toContain(`it holds a count of ${kind}, which may still limit the key. Nothing was changed.`);
      expect(answer.err).toContain(`--policy '${advice}'`);
    }
    expect((await limiter.peek("ann")).remaining).toBe(0);
    const right = ["--rule", limiter.name, "--key", "ann", "--policy", advice.replace("<units>", "1").replace(/<\w+>/, "3")];
    expect(await reset(...right)).toMatchObject({ code: 0 });
    expect((await limiter.peek("ann")).remaining).toBe(3);
    redis.disconnect();
  });

  it.each([
    ["concurrency of 30s", { policy: concurrency({ limit: 3, hold: "30s" }) }],
    ["token-bucket smooth of 10m, held for 1m", { policy: tokenBucket({ capacity: 3, refill: 1, every: "10m" }), hold: "1m" }],
    ["calendar-window month 1 EUROPE/BERLIN", { policy: calendarWindow({ limit: 3, per: "month", timeZone: "Europe/Berlin" }) }],
  ] as const)("is asked for a rule in a file if no text states its policy: %s", async (kind, options) => {
    const redis = new Redis(url);
    const limiter = createLimiter({ name: "in code", ...options, store: redisStore(redis), timeoutMs: 10_000 });
    await limiter.consume("ann");
    const unsaid = await status("--rule", "in code", "--key", "ann");
    expect(unsaid.err).toContain("If the limit is defined in code, say its policy: a rule in a rules file or in Redis.");
    const other = await reset("--rule", "in code", "--key", "ann", "--policy", "fixed-window 3/7m");
    expect(other.err).toContain(`it holds a count of ${kind}, which may still limit the key.`);
    redis.disconnect();
  });

  it.each<{ key: Key }>([{ key: ["a2", "b"] }, { key: "(a2,b)" }])("is given as it is printed: $key", async ({ key }) => {
    const redis = new Redis(url);
    const store = redisStore(redis, { denyCache: false });
    const limiter = createLimiter({ name: "posts", policy: fixedWindow({ limit: 1, window: "365d" }), store, timeoutMs: 10_000 });
    await limiter.consume(key);
    const ask = ["--rule", "posts", "--key", encodeKey(key)];
    expect((await status(...ask)).out).toContain(" 1 of 1 ");
    expect((await reset(...ask)).code).toBe(0);
    expect(await limiter.peek(key)).toMatchObject({ remaining: 1 });
    redis.disconnect();
  });

  it("is blocked for a time, which a reset does not lift, and unblocked", async () => {
    const { post, close } = await app();
    const ip = "198.51.100.77";
    const ask = ["--rule", "per-ip", "--key", ip];
    expect(await post("blocked-a", ip)).toBe(204);
    const blocked = await block(...ask, "--for", "2d");
    expect(blocked.out).toMatch(/^Before: .*: not limited\n[\s\S]*After: .*: blocked\n[\s\S]*blocked by hand, for (2d|1d 23h)/);
    expect(await post("blocked-b", ip)).toBe(429);
    expect((await reset(...ask)).out).toMatch(/After: .*: blocked\n/);
    expect((await unblock(...ask)).out).toMatch(/After: .*: not limited\n/);
    await expect.poll(() => post("blocked-c", ip), { timeout: 5000 }).toBe(204);
    const { code, err } = await block(...ask, "--for", "60");
    expect([code, err]).toEqual([64, expect.stringContaining("It must be a duration such as 15m, 1h or 7d, at most 13031248d.")]);
    await close();
  });

  it("is shown as banned until a time, and its ban is lifted by reset", async () => {
    const { post, close } = await app();
    const ip = "2001:db8::5";
    const ask = ["--rule", "per-ip", "--key", "2001:DB8:0:00aa:0::7"];
    const json = async () => JSON.parse((await status(...ask, "--json")).out);
    for (const user of ["a", "b", "c"]) await post(user, ip);
    expect(await json()).toMatchObject({
      key: "2001:db8::/56",
      plans: [{ used: 2, allowed: false }],
      blocked: null,
      ban: { rejections: 1 },
    });
    await post("d", ip);
    await expect.poll(json).toMatchObject({ blocked: { leftMs: expect.any(Number) } });

    const banned = await status(...ask);
    expect(banned.out).toMatch(/^per-ip, key 2001:db8::\/56: blocked\n/);
    expect(banned.out).toMatch(/ {2}banned after repeated rejections, for (1d|23h 59m \d+s) more, until/);
    expect((await reset(...ask)).out).toMatch(/After: .*: not limited\n[\s\S]*not banned: 0 rejections of 2 within 1h for a ban of 1d\n$/);
    expect(await post("e", ip)).toBe(204);
    await close();
  });

  it.each([
    ["posts", "ann", "por", '"posts" has no plan "por". Did you mean "pro"? Plans: pro. The rule\'s own policy is shown'],
    ["posts", "ann", "constructor", '"posts" has no plan "constructor". Plans: pro.'],
    ["per-ip", "::1", "pro", '"per-ip" has no plan "pro". Plans: none.'],
  ])("of %s is shown under the rule's own policy for an unknown plan", async (rule, key, plan, note) => {
    const { code, out, err } = await status("--rule", rule, "--key", key, "--plan", plan, "--json");
    expect(code).toBe(0);
    expect(err).toContain(note);
    expect(JSON.parse(out).plans).toMatchObject([{ plan: null }]);
    expect((await status("--rule", "posts", "--key", "ann", "--plan", "pro")).err).toBe("");
  });

  it("is given by its parts", async () => {
    const { code, out } = await status("--rule", "login", "--key", "::ffff:192.0.2.1", "--key", "ann");
    expect(code).toBe(0);
    expect(out).toMatch(/^login, key \(192\.0\.2\.1,ann\): not limited\n/);
    expect(out).toContain("mode: shadow");
  });

  it.each([
    [["--rule", "login", "--key", "ann"], "Write --ip <address> --key <user>, or only --ip <address>"],
    [["--rule", "login", "--key", "ann", "--key", "ann"], '"ann" is not an IP address'],
    [["--rule", "post", "--key", "ann"], 'Did you mean "posts"?'],
    [["--rule", "posts"], "Write --key <user>, or only --ip <address>"],
    [["--rule", "per-ip", "--ip", "nonsense"], '"nonsense" is not an IP address'],
  ])("is refused with advice: %o", async (args, advice) => {
    const { code, err } = await status(...args);
    expect(code).toBe(64);
    expect(err).toContain(advice);
  });
});

test("status says how many units of a busy key processes have leased", async () => {
  const redis = new Redis(url);
  const store = redisStore(redis, { lease: { lifeMs: 10_000 } });
  const limiter = createLimiter({ name: "in code", policy: fixedWindow({ limit: 1000, window: "365d" }), store, timeoutMs: 10_000 });
  const ask = ["--rule", "in code", "--key", "ann", "--policy", "fixed-window 1000/365d"];
  expect((await command("status", ...ask)).out).not.toContain("leased");
  // A key is hot after ten requests, and the fetch of its lease is sent before the last answer.
  for (let i = 0; i < 12; i++) await limiter.consume("ann");
  await redis.ping();
  expect((await command("status", ...ask)).out).toMatch(/ {2}leased \(used, maybe not spent\): \d+ units by 1 process\n$/);
  const { leased } = JSON.parse((await command("status", ...ask, "--json")).out);
  expect(leased).toEqual({ units: expect.any(Number), processes: 1 });
  await store.releaseLeases();
  limiter.close();
  redis.disconnect();
});

test("status reads the active rules, and counts under another prefix", async () => {
  await command("push", file);
  const redis = new Redis(url);
  const store = redisStore(redis, { prefix: "mine" });
  await createLimiter({ name: "posts", policy: fixedWindow({ limit: 1, window: "365d" }), store, timeoutMs: 10_000 }).consume(42);
  const used = async (...args: string[]) => {
    const { plans } = JSON.parse((await command("status", "--rule", "posts", "--key", "42", "--plan", "free", "--json", ...args)).out);
    return plans[0].used;
  };
  expect(await used("--prefix", "mine")).toBe(1);
  expect(await used()).toBe(0);
  redis.disconnect();
});
