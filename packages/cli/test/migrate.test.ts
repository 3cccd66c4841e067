import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

// tools/migration runs what the command writes, beside the original.

const { write, path } = tempFolder();

async function rewritten(code: string, library = "express-rate-limit") {
  const { code: exitCode, out, err } = await floodgate(["migrate", library, "-", "--json"], code);
  return { exitCode, err, ...JSON.parse(out) };
}

describe("floodgate migrate", () => {
  it("prints each call before and after, and changes nothing", async () => {
    const code = 'import rateLimit from "express-rate-limit";\n\nexport const limit = rateLimit({ windowMs: 60_000, max: 5 });\n';
    const file = write("app.ts", code);
    expect(await floodgate(["migrate", "express-rate-limit", file])).toEqual({
      code: 0,
      err: "",
      out: `${file}:3
- rateLimit({ windowMs: 60_000, max: 5 })
+ rateLimit({ window: "1m", limit: 5, headers: "legacy" })

Nothing is changed yet: add --write. Then: npm install @floodgate/express
What changes for clients: node_modules/@floodgate/core/docs/migrating/from-express-rate-limit.md
`,
    });
    expect(readFileSync(file, "utf8")).toBe(code);
  });

  it("changes the file with --write, and keeps comments, quotes and layout", async () => {
    const file = write(
      "app.js",
      `const express = require('express')
const limiterOf = require('express-rate-limit')

const app = express()
app.use(limiterOf({
  windowMs: 15 * 60 * 1000, // a quarter of an hour
  // per address
  max: 100,
  legacyHeaders: false, // nobody reads them
  standardHeaders: true
}))
`,
    );
    expect((await floodgate(["migrate", "express-rate-limit", file, "--write"])).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(`const express = require('express')
const { rateLimit } = require('@floodgate/express')

const app = express()
app.use(rateLimit({
  window: "15m", // a quarter of an hour
  // per address
  limit: 100,
  headers: "draft-6"
}))
`);
  });

  it("names each line that it cannot rewrite, leaves it as it was, and exits with 1", async () => {
    const code = `import { rateLimit, type Options } from "express-rate-limit";
import { options } from "./options.js";
const a: Partial<Options> = {};
export const one = rateLimit({ limit: 5, logger: console, identifier: (req) => req.path });
export const two = rateLimit(options);
export const three = (req) => req.rateLimit.resetTime;
`;
    const result = await rewritten(code);
    expect(result.exitCode).toBe(1);
    expect(result.err).toBe("floodgate: 5 things in stdin to do by hand.\n");
    expect(
      result.byHand.map(
        ({ line, column, message }: { line: number; column: number; message: string }) => `${line}:${column} ${message.slice(0, 30)}`,
      ),
    ).toEqual([
      "3:18 `Options` of express-rate-limi",
      "4:42 `logger`: Write `onEvent: (eve",
      '4:59 Write `name: "api"`: a name is',
      "5:30 The options are not an object ",
      "6:31 Write new Date(Date.now() + re",
    ]);
    expect(result.code).toBe(`import { rateLimit } from "@floodgate/express";
import { type Options } from "express-rate-limit";
import { options } from "./options.js";
const a: Partial<Options> = {};
export const one = rateLimit({ limit: 5, logger: console, identifier: (req) => req.path, window: "1m", headers: "legacy" });
export const two = rateLimit(options);
export const three = (req) => req.rateLimit.resetTime;
`);
  });

  it("changes no file that it cannot keep: text in another encoding, or nothing to rewrite", async () => {
    const file = path("latin1.js");
    const bytes = Buffer.from(`import rateLimit from "express-rate-limit";\n// caf\u00e9\nrateLimit({ limit: 5 });\n`, "latin1");
    writeFileSync(file, bytes);
    expect(await floodgate(["migrate", "express-rate-limit", file, "--write"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("latin1.js is not UTF-8 text, or has changed meanwhile."),
    });
    expect(readFileSync(file)).toEqual(bytes);
    const unused = write("unused.js", 'import rateLimit from "express-rate-limit";\n');
    expect(await floodgate(["migrate", "express-rate-limit", unused, "--write"])).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining("but calls nothing of it."),
    });
    expect(JSON.parse((await floodgate(["migrate", "express-rate-limit", unused, "--write", "--json"])).out)).toMatchObject({
      written: false,
    });
  });

  it("leaves an option with the name of a method of objects to a person", async () => {
    const { byHand } = await rewritten(
      'import rateLimit from "express-rate-limit";\nrateLimit({ limit: 5, constructor: 1, handler: (req, res, next, options) => res.send(options.toString) });\n',
    );
    expect(byHand.map(({ message }: { message: string }) => message)).toEqual([
      "`constructor`: Floodgate has no such option. Remove it, or see the page.",
      "`onLimited` gets (req, res, decision), and neither `next` nor the options. Rewrite what uses them.",
    ]);
  });

  it("names several limits after their variables and routes, so that they are told apart", async () => {
    const { code } = await rewritten(`import { rateLimit } from "express-rate-limit";
const apiLimiter = rateLimit({ limit: 100 });
app.post("/login", rateLimit({ limit: 5 }));
const limiter = rateLimit({ limit: 1000 });
apiLimiter.resetKey("ann");
`);
    expect(code).toBe(`import { rateLimit } from "@floodgate/express";
const apiLimiter = rateLimit({ limit: 100, window: "1m", name: "api", headers: "legacy" });
app.post("/login", rateLimit({ limit: 5, window: "1m", name: "login", headers: "legacy" }));
const limiter = rateLimit({ limit: 1000, window: "1m", headers: "legacy" });
apiLimiter.limiter.reset("ann");
`);
  });

  it.each([
    ["handler: (req, res) => res.end()", "onLimited: (req, res) => res.end()"],
    ["statusCode: 503", 'onLimited: (req, res) => res.status(503).send("Too many requests, please try again later.")'],
    ['message: async (req) => req.t("slow")', 'onLimited: async (req, res) => res.send(await (async (req) => req.t("slow"))(req, res))'],
    ["skipFailedRequests: true, requestWasSuccessful: (req, res) => res.statusCode !== 401", "refundWhen: (status) => !(status !== 401)"],
    ["keyGenerator: (req) => req.ip", ""],
    ["keyGenerator: (req, res) => req.user.id", "key: (req) => req.user.id"],
    ["keyGenerator: req => req.user?.id ?? req.ip", "key: (req, { ip }) => req.user?.id ?? ip"],
    ["keyGenerator(req) { return req.user.id; }", "key(req) { return req.user.id; }"],
    ["ipv6Subnet: false", "ipv6Prefix: 128"],
    ["store: new erl.MemoryStore(), passOnStoreError: true, validate: false", ""],
    ["limit: async (req) => limitOf(req)", 'policy: async (req) => slidingWindowCounter({ limit: await (limitOf(req)), window: "1m" })'],
  ])("writes %s as %s", async (theirs, ours) => {
    const limit = theirs.startsWith("limit") ? "" : "limit: 5, windowMs: 60000, ";
    const { code, byHand } = await rewritten(
      `import * as erl from "express-rate-limit";\nerl.rateLimit({ ${limit}${theirs}, legacyHeaders: true });\n`,
    );
    const expected = [limit === "" ? "" : 'limit: 5, window: "1m"', ours, 'headers: "legacy"'].filter((text) => text !== "");
    expect(code.split("\n")[1]).toBe(`rateLimit({ ${expected.join(", ")} });`);
    expect(byHand).toEqual([]);
  });

  it.each([
    [["migrate", "express-rate-limt", "app.js"], 64, 'Did you mean "express-rate-limit"? It knows express-rate-limit'],
    [["migrate", "constructor", "app.js"], 64, "migrate does not know constructor."],
    [["migrate", "express-rate-limit", path("missing.js")], 64, "missing.js does not exist."],
    [["migrate", "express-rate-limit", "-", "--write"], 64, "--write needs a file."],
    [["migrate", "express-rate-limit", write("other.js", "let a = 1;\n")], 1, "other.js does not import express-rate-limit."],
    [["migrate", "express-rate-limit", write("broken.js", "let a =\n= 1;\n")], 1, "broken.js:2:1: this is not JavaScript that can be read"],
  ])("%o exits with %i", async (args, exitCode, message) => {
    const ended = await floodgate(args);
    expect(ended.code).toBe(exitCode);
    expect(ended.err).toContain(message);
  });
});

it("other commands do not load the parser", () => {
  const run = join(__dirname, "..", "dist", "index.js");
  const script = `require(${JSON.stringify(run)}); console.log(Object.keys(require.cache).filter((file) => /@babel|magic-string|dist.migrate/.test(file)).length)`;
  expect(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" })).toBe("0\n");
});

describe("floodgate migrate koa-ratelimit", () => {
  it.each([
    ["max: 5, duration: 60000", 'limit: 5, window: "1m"'],
    ["status: 503, errorMessage: 'Slow down'", `onLimited: (ctx) => { ctx.status = 503; ctx.body = 'Slow down'; }`],
    ["throw: true, errorMessage: 'Slow down'", "onLimited: (ctx) => ctx.throw(429, 'Slow down')"],
    ["id: (ctx) => ctx.ip", ""],
    ["id: ctx => ctx.state.user ?? ctx.ip", "key: (ctx, { ip }) => ctx.state.user ?? ip"],
    ["whitelist: (ctx) => ctx.path === '/health'", "skip: (ctx) => ctx.path === '/health'"],
  ])("writes %s as %s", async (theirs, ours) => {
    const { code, byHand } = await rewritten(
      `const ratelimit = require('koa-ratelimit');\napp.use(ratelimit({ ${theirs}, driver: 'memory', db: new Map(), disableHeader: true }));\n`,
      "koa-ratelimit",
    );
    const defaults = theirs.startsWith("max") ? "" : ', limit: 2500, window: "1h"';
    expect(code).toBe(
      `const { rateLimit } = require('@floodgate/koa');\napp.use(rateLimit({ ${ours === "" ? "" : `${ours}, `}headers: false${defaults} }));\n`,
    );
    expect(byHand).toEqual([]);
  });

  it("leaves to a person what has no equal", async () => {
    const { exitCode, byHand } = await rewritten(
      `import limit from "koa-ratelimit";
app.use(limit({ driver: "memory", id: (ctx) => ctx.state.user ?? false, blacklist: isBad, headers: { total: "X" }, onLimited: log }));
app.use((ctx) => ctx.state.rateLimit.after);
`,
      "koa-ratelimit",
    );
    expect(exitCode).toBe(1);
    expect(byHand.map(({ message }: { message: string }) => message.slice(0, 25))).toEqual([
      "`false` is a key here. To",
      "`blacklist`: Reject such ",
      "`headers`: Header names a",
      "Write one `onLimited: (ct",
      "Write Math.ceil(ctx.state",
    ]);
  });
});

describe("floodgate migrate hono-rate-limiter", () => {
  it.each([
    ["message: { error: 'Slow down' }", "body: { error: 'Slow down' }"],
    ["statusCode: 503", 'onLimited: (c) => c.text("Too many requests, please try again later.", 503)'],
    [
      "handler: (c, next, options) => c.text(options.message, options.statusCode)",
      'onLimited: (c) => c.text("Too many requests, please try again later.", 429)',
    ],
    ["keyGenerator: (c) => c.req.header('x-user')", "key: (c) => c.req.header('x-user')"],
    ["skipFailedRequests: true, requestWasSuccessful: (c) => c.res.status < 500", "refundWhen: (status) => !(status < 500)"],
  ])("writes %s as %s", async (theirs, ours) => {
    const { code, byHand } = await rewritten(
      `import { rateLimiter } from "hono-rate-limiter";\napp.use(rateLimiter({ limit: 5, windowMs: 1500, ${theirs}, standardHeaders: false }));\n`,
      "hono-rate-limiter",
    );
    expect(code).toBe(
      `import { rateLimit } from "@floodgate/hono";\napp.use(rateLimit({ limit: 5, window: "1500ms", ${ours}, headers: false }));\n`,
    );
    expect(byHand).toEqual([]);
  });

  it("leaves to a person what has no equal", async () => {
    const { byHand, notes } = await rewritten(
      `import { rateLimiter } from "hono-rate-limiter";
app.use(rateLimiter({ binding: (c) => c.env.LIMIT, keyGenerator: (c) => c.req.header("cf-connecting-ip") ?? "" }));
app.get("/", (c) => c.json(c.get("rateLimit").resetTime));
`,
      "hono-rate-limiter",
    );
    expect(byHand.map(({ line, message }: { line: number; message: string }) => `${line} ${message.slice(0, 20)}`)).toEqual([
      "2 `binding`: Floodgate",
      "3 Write new Date(Date.",
    ]);
    expect(notes[0].message).toContain("Anyone can send this header.");
  });
});

describe("floodgate migrate @upstash/ratelimit", () => {
  const head = `import { Ratelimit } from "@upstash/ratelimit";\nimport { redis } from "./redis.js";\n`;
  const imports = (policy: string) =>
    `import { createLimiter, ${policy} } from "@floodgate/core";\nimport { redisStore } from "@floodgate/store-redis";\nimport { redis } from "./redis.js";\n`;

  it.each([
    ['slidingWindow(10, "10 s")', 'slidingWindowCounter({ limit: 10, window: "10s" })'],
    ['fixedWindow(10, "1 m")', 'fixedWindow({ limit: 10, window: "1m" })'],
    ['tokenBucket(5, "10 s", 20)', 'tokenBucket({ capacity: 20, refill: 5, every: "10s", style: "interval" })'],
  ])("writes %s as %s", async (theirs, ours) => {
    const { code, byHand } = await rewritten(
      `${head}export const api = new Ratelimit({ redis, limiter: Ratelimit.${theirs}, prefix: "v1", analytics: true });\n`,
      "@upstash/ratelimit",
    );
    expect(code).toBe(
      `${imports(ours.split("(")[0] ?? "")}export const api = createLimiter({ store: redisStore(redis), policy: ${ours}, name: "v1" });\n`,
    );
    expect(byHand.map(({ message }: { message: string }) => message.slice(0, 40))).toEqual(["`redisStore` needs a client for TCP: new"]);
  });

  it("rewrites the calls of the limiter, and what is taken from their results", async () => {
    const { code, byHand } = await rewritten(
      `${head}const chatLimiter = new Ratelimit({ redis, limiter: Ratelimit.slidingWindow(10, "10 s") });
const { success, remaining: left } = await chatLimiter.limit(id, { rate: 4 });
const { success: ok, reset } = await chatLimiter.limit(id);
await chatLimiter.resetUsedTokens(id);
await chatLimiter.blockUntilReady(id, 1000);
`,
      "@upstash/ratelimit",
    );
    expect(code.split("\n").slice(3, 8)).toEqual([
      'const chatLimiter = createLimiter({ store: redisStore(redis), policy: slidingWindowCounter({ limit: 10, window: "10s" }), name: "chat" });',
      "const { allowed: success, remaining: left } = await chatLimiter.consume(id, { cost: 4 });",
      "const { allowed: ok, reset } = await chatLimiter.consume(id);",
      "await chatLimiter.reset(id);",
      "await chatLimiter.blockUntilReady(id, 1000);",
    ]);
    expect(byHand.map(({ line }: { line: number }) => line)).toEqual([3, 5, 7]);
  });
});

describe("floodgate migrate rate-limiter-flexible", () => {
  it("rewrites limiters, and names each use that must change", async () => {
    const { code, byHand, exitCode } = await rewritten(
      `const { RateLimiterRedis, RateLimiterMemory } = require('rate-limiter-flexible');
const byIp = new RateLimiterMemory({ points: 6, duration: 1 });
const logins = new RateLimiterRedis({ storeClient: redis, keyPrefix: 'login', points: 5, duration: 15 * 60, blockDuration: 900 });
byIp.consume(ip).then(next).catch(reject);
await logins.delete(user);
await logins.block(user, 3600);
await logins.reward(user, 1);
`,
      "rate-limiter-flexible",
    );
    expect(code).toBe(`const { createLimiter, fixedWindow } = require('@floodgate/core');
const { memoryStore } = require('@floodgate/store-memory');
const { redisStore } = require('@floodgate/store-redis');
const byIp = createLimiter({ policy: fixedWindow({ limit: 6, window: "1s" }), name: "by-ip", store: memoryStore() });
const logins = createLimiter({ store: redisStore(redis), name: "login", policy: fixedWindow({ limit: 5, window: "15m" }), blockDuration: 900 });
byIp.consume(ip).then(next).catch(reject);
await logins.reset(user);
await logins.block(user, "1h");
await logins.reward(user, 1);
`);
    expect(exitCode).toBe(1);
    expect(byHand.map(({ line, message }: { line: number; message: string }) => `${line} ${message.slice(0, 24)}`)).toEqual([
      "3 `blockDuration`: Block t",
      "4 A rejection is a result ",
      "7 Write logins.refund(key,",
    ]);
  });
});
