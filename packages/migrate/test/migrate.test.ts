import { describe, expect, it } from "vitest";
import { type Library, type Migration, migrate } from "../src/index.js";

// tools/migration runs what is written, beside the original.

function rewritten(code: string, library: Library = "express-rate-limit", file = "app.ts"): Migration {
  const migration = migrate(library, file, code);
  if (migration === undefined) throw new Error("The code does not use the library.");
  return migration;
}

/** The first words of what is left to do, with their lines. */
function todo({ byHand }: Migration): string[] {
  return byHand.map(({ line, message }) => `${line} ${message.slice(0, 24)}`);
}

describe("migrate express-rate-limit", () => {
  const head = 'import rateLimit from "express-rate-limit";\n';

  it("keeps comments, quotes and layout", () => {
    const { code } = rewritten(`const express = require('express')
const limiterOf = require('express-rate-limit')

const app = express()
app.use(limiterOf({
  windowMs: 15 * 60 * 1000, // a quarter of an hour
  // per address
  max: 100,
  legacyHeaders: false, // nobody reads them
  standardHeaders: true
}))
`);
    expect(code).toBe(`const express = require('express')
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

  it("leaves a call as it is that it cannot rewrite whole, and the library's function with it", () => {
    const code = `import { rateLimit, type Options } from "express-rate-limit";
const a: Partial<Options> = {};
export const one = rateLimit({ limit: 5, logger: console, identifier: (req) => req.path });
export const two = rateLimit(a);
export const three = rateLimit({ limit: 5, legacyHeaders: false });
`;
    const result = rewritten(code);
    expect(todo(result)).toEqual([
      "2 `Options` of express-rat",
      "3 `logger`: Write `onEvent",
      '3 Write `name: "api"`: a n',
      "4 The options are not an o",
    ]);
    expect(result.calls.map(({ after }) => after)).toEqual([
      undefined,
      undefined,
      'floodgateRateLimit({ limit: 5, headers: false, window: "1m", name: "three" })',
    ]);
    expect(result.code).toBe(
      code
        .replace("import {", 'import { rateLimit as floodgateRateLimit } from "@floodgate/express";\nimport {')
        .replace(
          "rateLimit({ limit: 5, legacyHeaders: false })",
          'floodgateRateLimit({ limit: 5, headers: false, window: "1m", name: "three" })',
        ),
    );
  });

  it("names several limits after their variables and routes, so that they are told apart", () => {
    const { code } = rewritten(`import { rateLimit } from "express-rate-limit";
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
    ["keyGenerator: (req) => { const ip = req.ip; return ip; }", "key: (req, { ip: address }) => { const ip = address; return ip; }"],
    ["keyGenerator: keys.client", "key: (req) => keys.client(req)"],
    ["ipv6Subnet: false", "ipv6Prefix: 128"],
    ["store: new erl.MemoryStore(), passOnStoreError: true, validate: false", ""],
    ["limit: async (req) => limitOf(req)", 'policy: async (req) => slidingWindowCounter({ limit: await (limitOf(req)), window: "1m" })'],
    ["windowMs: (Number(env) || 60) * 1000", "window: (Number(env) || 60) * 1000"],
    ['skip: (req) => req.path === "/health"', 'skip: (req) => req.path === "/health"'],
    ["skip: (req) => req.user", "skip: (req) => Boolean(req.user)"],
    ["skip: (req) => isAdmin(req)", "skip: async (req) => Boolean(await (isAdmin(req)))"],
    ["skip: isAdmin", "skip: async (req) => Boolean(await isAdmin(req))"],
    [
      "skip: (req, res) => { if (req.user) return true; }",
      "skip: async (req) => Boolean(await ((req) => { if (req.user) return true; })(req))",
    ],
  ])("writes %s as %s", (theirs, ours) => {
    const limit = theirs.startsWith("limit") ? "" : theirs.startsWith("windowMs") ? "limit: 5, " : "limit: 5, windowMs: 60000, ";
    const { code, byHand } = rewritten(
      `import * as erl from "express-rate-limit";\nerl.rateLimit({ ${limit}${theirs}, legacyHeaders: true });\n`,
    );
    const ownLimit = limit === "" ? "" : limit === "limit: 5, " ? "limit: 5" : 'limit: 5, window: "1m"';
    const expected = [ownLimit, ours, 'headers: "legacy"'].filter((text) => text !== "");
    expect(code.split("\n")[1]).toBe(`rateLimit({ ${expected.join(", ")} });`);
    expect(byHand).toEqual([]);
  });

  it.each([
    ["limit: on ? 5 : Infinity", "`Infinity` is not a limi"],
    ["max: 0", "A limit of 0 rejects eve"],
    ['max: "5"', "`limit` must be a number"],
    ["max: 5, limit: 6", "This option is given twi"],
    ["skip: (req, res) => res.locals.admin", "`skip` gets the request,"],
    ["keyGenerator: (req, res) => res.locals.user", "`key` gets the request a"],
    ["handler: (req, res, next) => next(new Error())", "`onLimited` gets (req, r"],
    ["store: new MongoStore()", "Floodgate has stores for"],
    ["...options", "Options that are spread "],
    ["constructor: 1", "`constructor`: Floodgate"],
  ])("leaves { %s } to a person, and changes nothing", (options, message) => {
    const code = `${head}export const limit = rateLimit({ ${options} });\n`;
    const result = rewritten(code);
    expect(result.byHand.map((one) => one.message.slice(0, 24))).toContain(message);
    expect(result.code).toBe(code);
  });

  it.each([
    ['import RedisStore from "rate-limit-redis";', "redis"],
    ['const RedisStore = require("rate-limit-redis").default;', "redis"],
    ['import { RedisStore } from "rate-limit-redis";', "(redis as any)"],
  ])("rewrites the Redis store of %s", (statement, client) => {
    const { code, byHand } = rewritten(
      `${head}${statement}\nexport const api = rateLimit({ limit: 5, store: new RedisStore({ sendCommand: (...args) => ${client}.call(...args) }) });\n`,
    );
    expect(byHand).toEqual([]);
    expect(code).toBe(`import { rateLimit } from "@floodgate/express";
import { redisStore } from "@floodgate/store-redis";
export const api = rateLimit({ limit: 5, store: redisStore(redis), window: "1m", onStoreError: "deny", name: "api", headers: "legacy" });
`);
  });

  it.each([
    ["(req, res, next) => rateLimit({ limit: 5 })(req, res, next)"],
    ["(req, res, next) => { const limit = rateLimit({ limit: 5 }); limit(req, res, next); }"],
    ["function (req, res) { const limit = rateLimit({ limit: 5 }); limit(req, res, () => 1); }"],
  ])("leaves a limit that is made for each request: %s", (handler) => {
    const code = `${head}app.use(${handler});\n`;
    const result = rewritten(code);
    expect(todo(result)).toEqual(["2 This makes a limit for e"]);
    expect(result.code).toBe(code);
  });

  it("leaves a call of a name that may be another function's", () => {
    const code = `${head}function mount({ rateLimit }) { return rateLimit({ limit: 5 }); }\n`;
    const result = rewritten(code);
    expect(todo(result)).toEqual(["2 `rateLimit` has several "]);
    expect(result.code).toBe(code);
  });

  it("rewrites what handlers read of a decision, or names it, and nothing else of that name", () => {
    const { code, byHand } = rewritten(`${head}rateLimit({ limit: 5 });
export const a = (req) => [req.rateLimit.current, req.rateLimit.resetTime, (req as any).rateLimit.key, config.rateLimit.resetTime];
export const b = ({ req }) => { const { current } = req.rateLimit; };
`);
    expect(code).toContain("[req.rateLimit.used, req.rateLimit.resetTime, (req as any).rateLimit.key, config.rateLimit.resetTime]");
    expect(byHand.map(({ line, message }) => `${line} ${message.slice(0, 24)}`)).toEqual([
      "3 Write new Date(Date.now(",
      "3 A decision has no `key`.",
      "4 req.rateLimit is a decis",
    ]);
  });

  it("keeps an object of options that others may read", () => {
    for (const declaration of ["export const options = {", "const options: Partial<Options> = {"]) {
      const code = `${head}${declaration} limit: 5 };\nrateLimit(options);\n`;
      expect(rewritten(code).code).toBe(code);
    }
  });
});

it("a file with a thousand calls takes a moment, and not minutes", () => {
  const call = (i: number) =>
    `export const limiter${i} = rateLimit({ limit: ${i + 1}, skip: isAllowed${i}, keyGenerator: (req) => req.id });\n`;
  const functions = (i: number) => `function isAllowed${i}(req) { return req.ok; }\n`;
  const code = Array.from({ length: 1000 }, (_, i) => call(i) + functions(i)).join("");
  const { calls, byHand } = rewritten(`import { rateLimit } from "express-rate-limit";\n${code}`);
  expect(calls.filter(({ after }) => after !== undefined)).toHaveLength(1000);
  expect(byHand).toEqual([]);
});

describe("migrate koa-ratelimit", () => {
  it.each([
    ["max: 5, duration: 60000", 'limit: 5, window: "1m"'],
    ["status: 503, errorMessage: 'Slow down'", `onLimited: (ctx) => { ctx.status = 503; ctx.body = 'Slow down'; }`],
    ["throw: true, errorMessage: 'Slow down'", "onLimited: (ctx) => ctx.throw(429, 'Slow down')"],
    ["id: (ctx) => ctx.ip", ""],
    ["id: ctx => ctx.state.user ?? ctx.ip", "key: (ctx, { ip }) => ctx.state.user ?? ip"],
    ["whitelist: (ctx) => ctx.path === '/health'", "skip: (ctx) => ctx.path === '/health'"],
    ["whitelist: (ctx) => { log(ctx); }", "skip: async (ctx) => Boolean(await ((ctx) => { log(ctx); })(ctx))"],
  ])("writes %s as %s", (theirs, ours) => {
    const { code, byHand } = rewritten(
      `const ratelimit = require('koa-ratelimit');\napp.use(ratelimit({ ${theirs}, driver: 'memory', db: new Map(), disableHeader: true }));\n`,
      "koa-ratelimit",
    );
    const defaults = theirs.startsWith("max") ? "" : ', limit: 2500, window: "1h"';
    expect(code).toBe(
      `const { rateLimit } = require('@floodgate/koa');\napp.use(rateLimit({ ${ours === "" ? "" : `${ours}, `}headers: false${defaults} }));\n`,
    );
    expect(byHand).toEqual([]);
  });

  it("writes `headers` once, and says that header names are fixed", () => {
    const { code, notes } = rewritten(
      `import ratelimit from "koa-ratelimit";\nratelimit({ max: 5, duration: 60_000, driver: "memory", db, headers: { total: "Total" }, disableHeader: false });\n`,
      "koa-ratelimit",
    );
    expect(code).toContain('rateLimit({ limit: 5, window: "1m", headers: "legacy" });');
    expect(notes.map(({ message }) => message.slice(0, 12))).toContain("Clients get ");
  });

  it("leaves to a person what has no equal", () => {
    const code = `import limit from "koa-ratelimit";
app.use(limit({ driver: "memory", id: (ctx) => ctx.state.user ?? false, blacklist: isBad, onLimited: log }));
`;
    const result = rewritten(code, "koa-ratelimit");
    expect(todo(result)).toEqual(["2 `false` is a key here. T", "2 `blacklist`: Reject such", "2 Write one `onLimited: (c"]);
    expect(result.code).toBe(code);
  });

  it("reads JavaScript with types of Flow", () => {
    const code = `// @flow\nimport type { A } from "./a";\nimport limit from "koa-ratelimit";\nexport const a: A = limit({ driver: "memory", db });\n`;
    expect(rewritten(code, "koa-ratelimit", "app.js").byHand).toEqual([]);
  });
});

describe("migrate hono-rate-limiter", () => {
  it.each([
    ["message: { error: 'Slow down' }", "body: { error: 'Slow down' }"],
    ["statusCode: 503", 'onLimited: (c) => c.text("Too many requests, please try again later.", 503)'],
    [
      "handler: (c, next, options) => c.text(options.message, options.statusCode)",
      'onLimited: (c) => c.text("Too many requests, please try again later.", 429)',
    ],
    ["keyGenerator: (c) => c.req.header('x-user')", "key: (c) => c.req.header('x-user')"],
    ["keyGenerator", "key: (c) => keyGenerator(c)"],
    ["skipFailedRequests: true, requestWasSuccessful: (c) => c.res.status < 500", "refundWhen: (status) => !(status < 500)"],
  ])("writes %s as %s", (theirs, ours) => {
    const { code, byHand } = rewritten(
      `import { rateLimiter } from "hono-rate-limiter";\napp.use(rateLimiter<E>({ limit: 5, windowMs: 1500, ${theirs}, standardHeaders: false }));\n`,
      "hono-rate-limiter",
    );
    expect(code).toBe(
      `import { rateLimit } from "@floodgate/hono";\napp.use(rateLimit<E>({ limit: 5, window: "1500ms", ${ours}, headers: false }));\n`,
    );
    expect(byHand).toEqual([]);
  });

  it("leaves to a person what has no equal", () => {
    const result = rewritten(
      `import { rateLimiter } from "hono-rate-limiter";
app.use(rateLimiter({ binding: (c) => c.env.LIMIT, keyGenerator: (c) => c.req.header("cf-connecting-ip") ?? "" }));
app.use(rateLimiter({ keyGenerator: (c) => c.req.header("cf-connecting-ip") ?? "" }));
app.get("/", (c) => c.json(c.get("rateLimit").resetTime));
`,
      "hono-rate-limiter",
    );
    expect(todo(result)).toEqual(["2 `binding`: Floodgate doe", "4 Write new Date(Date.now("]);
    expect(result.notes[0]?.message).toContain("Anyone can send this header.");
  });
});

describe("migrate of limiters reports, and rewrites nothing", () => {
  it.each<[Library, string, string[]]>([
    [
      "rate-limiter-flexible",
      `const { RateLimiterRedis: Limiter } = require('rate-limiter-flexible');
exports.logins = new Limiter({ storeClient: redis, points: 5, duration: 15 * 60, blockDuration: 900 });
const { logins: other } = exports;
other.consume(ip).then(next).catch(reject);
exports.logins.delete(user);
new Map().delete(user);
const consume = other.consume.bind(other);
`,
      [
        "2 Write createLimiter({ na",
        "2 `blockDuration`: after a",
        "4 `consume` rejects its pr",
        "5 `delete`: write limiter.",
        "7 `consume` rejects its pr",
      ],
    ],
    [
      "@upstash/ratelimit",
      `import { Ratelimit } from "@upstash/ratelimit";
const made = () => new Ratelimit({ redis, limiter: Ratelimit.slidingWindow(10, "10 s") });
const { success } = await made().limit(id, { rate: 4 });
await db.select().limit(10);
await limiter?.blockUntilReady(id, 1000);
`,
      ["2 Write createLimiter({ na", "3 `limit`: write const { a", "5 `blockUntilReady`: wait "],
    ],
  ])("%s", (library, code, expected) => {
    const result = rewritten(code, library);
    expect(todo(result)).toEqual(expected);
    expect(result.code).toBe(code);
    expect(result.byHand[0]?.message).toContain(library === "@upstash/ratelimit" ? "slidingWindowCounter" : 'limit: 5, window: "15m"');
  });
});
