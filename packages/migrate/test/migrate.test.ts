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

  it.each([
    [
      "a message that is a method",
      'rateLimit({ statusCode: 420, message(req, res) { return "slow down"; } })',
      "1 Write `onLimited: async ",
    ],
    ["a window that is a function", "rateLimit({ max: 5, windowMs: () => 1000 })", "1 Write a window with a who"],
  ])("leaves %s to do by hand", (_, call, message) => {
    const result = rewritten(head.trim() + call);
    expect(todo(result)).toEqual([message.slice(0, 26)]);
    expect(result.calls[0]?.after).toBeUndefined();
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
    ["max: -1", "`limit` must be a number"],
    ["max: 2.5", "`limit` must be a number"],
    ["max: 5, delayMs: 0", "`delayMs`: Floodgate del"],
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

  it("keeps the comments of what stays, tabs, and the line ends of Windows", () => {
    const lines = (...all: string[]) => all.join("\r\n");
    const code = lines(
      'import rateLimit from "express-rate-limit";',
      'import RedisStore from "rate-limit-redis";',
      'import "./app.js";',
      "export default rateLimit({",
      "\tvalidate: false, // gone",
      "\t// a minute",
      "\twindowMs: 60_000,",
      "\tstore: new RedisStore({ sendCommand: (...args) => client.sendCommand(args) }), // shared",
      "\tmax: 5, // five",
      "\t// no X-RateLimit-*",
      "\tlegacyHeaders: true,",
      "\tvalidate: false,",
      "\t/* the end */",
      "});",
      "",
    ).replace("\tvalidate: false,\r\n\t/*", "\t/*");
    expect(rewritten(code).code).toBe(
      lines(
        'import { rateLimit } from "@floodgate/express";',
        'import { redisStore } from "@floodgate/store-redis";',
        'import "./app.js";',
        "export default rateLimit({",
        "\t// a minute",
        '\twindow: "1m",',
        "\tstore: redisStore(client), // shared",
        "\tlimit: 5, // five",
        "\t// no X-RateLimit-*",
        '\theaders: "legacy",',
        '\tonStoreError: "deny",',
        "\t/* the end */",
        "});",
        "",
      ),
    );
  });

  it.each([
    ["{\n  max: 5, // five\n  validate: false // gone\n}", '{\n  limit: 5, // five\n  window: "1m",\n  headers: "legacy"\n}'],
    ["{\n  max: 5, // five\n  validate: false,\n}", '{\n  limit: 5, // five\n  window: "1m",\n  headers: "legacy",\n}'],
    ["{ max: 5, /* a */ validate: false, /* b */ windowMs: 1000 }", '{ limit: 5, /* a */ window: "1s", headers: "legacy" }'],
    ["{ windowMs: 1000, max: 5, validate: false, passOnStoreError: true, }", '{ window: "1s", limit: 5, headers: "legacy", }'],
    [
      "{\n  windowMs: 1000,\n  max: 5,\n  standardHeaders: true,\n  legacyHeaders: false\n}",
      '{\n  window: "1s",\n  limit: 5,\n  headers: "draft-6"\n}',
    ],
    [
      "{\n  max: 5,\n  windowMs: 1000,\n  legacyHeaders: true,\n  validate: false\n}",
      '{\n  limit: 5,\n  window: "1s",\n  headers: "legacy"\n}',
    ],
  ])("writes the options %j as %j", (theirs, ours) => {
    expect(rewritten(`${head}rateLimit(${theirs});\n`).code).toBe(`import { rateLimit } from "@floodgate/express";\nrateLimit(${ours});\n`);
  });

  it("rewrites a function that is given in the short form", () => {
    const { code } = rewritten(`${head}const max = (req) => 5;\nrateLimit({ max, windowMs: 1000, legacyHeaders: false });\n`);
    expect(code).toContain(
      'rateLimit({ policy: async (request) => slidingWindowCounter({ limit: await max(request), window: "1s" }), headers: false });',
    );
  });

  it.each([
    ["max: process.env.MAX || 100", "limit: Number(process.env.MAX || 100)"],
    ["max: process.env['MAX'] ?? 100", "limit: Number(process.env['MAX'] ?? 100)"],
    ["max: process.env.MAX!", "limit: Number(process.env.MAX)"],
    ["max: parseInt(process.env.MAX) || 100", "limit: parseInt(process.env.MAX) || 100"],
    ["max: 5, windowMs: process.env.WINDOW || 1000", "limit: 5, window: Number(process.env.WINDOW || 1000)"],
  ])("reads a text of the environment as a number: %s", (theirs, ours) => {
    expect(rewritten(`${head}rateLimit({ ${theirs} });\n`).code).toContain(`rateLimit({ ${ours}, `);
  });

  it.each([
    ["ipKeyGenerator(req.ip, 64)"],
    ['ipKeyGenerator(req.headers["cf-connecting-ip"])'],
    ['"ip:" + ipKeyGenerator(req.get("x-real-ip") ?? req.ip)'],
  ])("leaves a key of another address or network to do by hand: %s", (key) => {
    const code = `import { ipKeyGenerator, rateLimit } from "express-rate-limit";\nrateLimit({ max: 5, keyGenerator: (req) => ${key} });\n`;
    expect(todo(rewritten(code))).toEqual(["2 `ipKeyGenerator`: write "]);
    expect(rewritten(code).code).toBe(code);
  });

  it.each([
    ['const { rateLimit } = await import("express-rate-limit");', "1 Dynamic imports are not "],
    ['app.use(require("express-rate-limit").rateLimit({ max: 5 }));', "1 This `require` is not re"],
    ['module.exports = require("express-rate-limit").default;', "1 This `require` is not re"],
    ['jest.mock("express-rate-limit", () => () => next);', "1 This call names the libr"],
    ['let options: import("express-rate-limit").Options;', "1 Types of an `import()` a"],
  ])("names what loads or mocks the library in another way: %s", (code, message) => {
    expect(todo(rewritten(code))).toEqual([message]);
  });

  it("rewrites a limit of `import = require`", () => {
    const { code, byHand } = rewritten('import rateLimit = require("express-rate-limit");\nrateLimit({ max: 5 });\n');
    expect(byHand).toEqual([]);
    expect(code).toContain('import { rateLimit } from "@floodgate/express";\nrateLimit({ limit: 5,');
  });

  it("names limits after what holds them", () => {
    const { code } = rewritten(`${head}exports.login2FALimiter = rateLimit({ max: 5 });
class A { apiLimiter = rateLimit({ max: 5 }); }
const all = { "upload-files": rateLimit({ max: 5 }) };
`);
    expect(code.match(/name: "[^"]*"/g)).toEqual(['name: "login2-fa"', 'name: "api"', 'name: "upload-files"']);
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

describe("migrate @fastify/rate-limit", () => {
  const migrated = (code: string, file = "app.ts") => rewritten(code, "@fastify/rate-limit", file);

  it("rewrites the plugin and the options of routes, and keeps comments and layout", () => {
    const result = migrated(`const fastify = require('fastify')()
fastify.register(require('./auth'))
const limiter = require('@fastify/rate-limit')

module.exports = async function (app, opts, next) {
  app.register(limiter, {
    max: 100, // for each client
    timeWindow: '1 minute',
    redis: client,
    nameSpace: 'api',
    skipOnError: true
  })
  app.get('/slow', { config: { rateLimit: { max: 5, keyGenerator: (req) => req.ip } } }, slow)
  app.get('/free', { config: { rateLimit: false } }, free)
}
`);
    expect(result.byHand).toEqual([]);
    expect(result.code).toBe(`const fastify = require('fastify')()
fastify.register(require('./auth'))
const { rateLimit } = require('@floodgate/fastify')
const { redisStore } = require('@floodgate/store-redis')

module.exports = async function (app, opts, next) {
  app.register(rateLimit({
    limit: 100, // for each client
    window: "1m",
    store: redisStore(client),
    name: "api",
    headers: "legacy"
  }))
  app.get('/slow', { config: { rateLimit: { limit: 5 } } }, slow)
  app.get('/free', { config: { rateLimit: false } }, free)
}
`);
  });

  it("rewrites the options of a route in a file that does not import the library", () => {
    const { code } = migrated("export const route = { url: '/', config: { rateLimit: { max: 5, timeWindow: 1000 } } };\n");
    expect(code).toBe("export const route = { url: '/', config: { rateLimit: { limit: 5, window: \"1s\" } } };\n");
  });

  it("reads the options of a route from a constant, and leaves settings of the app as they are", () => {
    const { code, byHand } = migrated(`const strict = { max: 5, timeWindow: 1000 };
app.get("/", { config: { rateLimit: strict } }, handler);
app.get("/", { config: { rateLimit: limits.strict } }, handler);
`);
    expect(todo({ byHand } as Migration)).toEqual(["3 The options are not an o"]);
    expect(code).toContain("const strict = { max: 5");
    const settings = "export const settings = { rateLimit: { max: 5, timeWindow: 1000 } };\n";
    expect(todo(migrated(settings))).toEqual(["1 If these are the options"]);
    expect(migrated(settings).code).toBe(settings);
    expect(migrated(`const strict = { max: 5 };\napp.get("/", { config: { rateLimit: strict } }, handler);\n`).code).toContain(
      "{ limit: 5 };",
    );
    expect(migrate("@fastify/rate-limit", "app.ts", "export const settings = { rateLimit: { max: 5 } };\n")).toBeUndefined();
  });

  it.each([
    ["allowList: ['127.0.0.1']", "exempt: { ips: ['127.0.0.1'] }"],
    ["allowList: (request, key) => request.url === '/'", "skip: (request) => request.url === '/'"],
    ["hook: 'preHandler'", "hook: 'preHandler'"],
    ["groupId: 'a'", "name: 'a'"],
    ["keyGenerator: (request) => request.user ?? request.ip", "key: (request, { ip }) => request.user ?? ip"],
  ])("writes %s as %s", (theirs, ours) => {
    const { code, byHand } = migrated(
      `import plugin from "@fastify/rate-limit";\napp.register(plugin, { max: 5, timeWindow: "2 hours", ${theirs} });\n`,
    );
    expect(code.split("\n")[1]).toBe(`app.register(rateLimit({ limit: 5, window: "2h", ${ours}, headers: "legacy" }));`);
    expect(byHand).toEqual([]);
  });

  it("leaves to a person what has no equal", () => {
    const result = migrated(`import plugin from "@fastify/rate-limit";
app.register(plugin, { max: async () => 5 });
app.register(plugin, { errorResponseBuilder: () => ({}), hook: "onSend" });
app.register(plugin, options);
app.get("/", { preHandler: app.rateLimit() });
`);
    expect(todo(result)).toEqual([
      "2 A limit of each request'",
      "3 `errorResponseBuilder`: ",
      '3 Write `hook: "onRequest"',
      "4 The options are not an o",
    ]);
    expect(result.calls.map(({ after }) => after)).toEqual([undefined, undefined, undefined]);
  });
});

describe("migrate @nestjs/throttler", () => {
  const migrated = (code: string) => rewritten(code, "@nestjs/throttler");

  it("rewrites the module, the guard and the decorators", () => {
    const result = migrated(`import { SkipThrottle, Throttle, ThrottlerGuard as Guard, ThrottlerModule } from "@nestjs/throttler";
@Module({ imports: [ThrottlerModule.forRoot({ throttlers: [{ name: "default", ttl: 60_000, limit: 10 }] })] })
class App {}
@UseGuards(Guard)
class Posts {
  @Throttle({ default: { limit: 2 } })
  post() {}
  @SkipThrottle()
  one() {}
  @SkipThrottle({ default: false })
  two() {}
}
`);
    expect(result.byHand).toEqual([]);
    expect(result.code).toBe(`import { FloodgateGuard, FloodgateModule, RateLimit, SkipRateLimit } from "@floodgate/nestjs";
@Module({ imports: [FloodgateModule.forRoot({ window: "1m", limit: 10, key: ["ip", "route"], headers: "legacy" })] })
class App {}
@UseGuards(FloodgateGuard)
class Posts {
  @RateLimit({ limit: 2 })
  post() {}
  @SkipRateLimit()
  one() {}
  @SkipRateLimit(false)
  two() {}
}
`);
  });

  it("imports the type of the options as a type", () => {
    const { code } = migrated('import { type ThrottlerModuleOptions } from "@nestjs/throttler";\nlet options: ThrottlerModuleOptions;\n');
    expect(code).toBe('import { type FloodgateModuleOptions } from "@floodgate/nestjs";\nlet options: FloodgateModuleOptions;\n');
  });

  it.each([
    ["() => [{ ttl: 1000, limit: 5 }]", '() => ({ window: "1s", limit: 5,'],
    [
      "async (config: Config) => ({ throttlers: [{ ttl: config.ttl, limit: config.limit }] })",
      "async (config: Config) => ({ window: config.ttl, limit: config.limit,",
    ],
    [
      "(config): ThrottlerModuleOptions => { return [{ ttl: config.ttl, limit: 5 }]; }",
      "(config): FloodgateModuleOptions => { return { window: config.ttl, limit: 5,",
    ],
  ])("rewrites what a factory returns: %s", (theirs, ours) => {
    const { code, byHand } = migrated(
      `import { ThrottlerModule, ThrottlerModuleOptions } from "@nestjs/throttler";\nThrottlerModule.forRootAsync({ inject: [Config], useFactory: ${theirs} });\n`,
    );
    expect(byHand).toEqual([]);
    const end = theirs.endsWith("; }") ? "; }" : ")";
    expect(code).toContain(
      `FloodgateModule.forRootAsync({ inject: [Config], useFactory: ${ours} key: ["ip", "route"], headers: "legacy" }${end} });`,
    );
  });

  it.each([
    ["several limits", "ThrottlerModule.forRoot([{ ttl: 1, limit: 1 }, { ttl: 2, limit: 2 }]);", "Write the options of one"],
    ["a module whose options come later", "ThrottlerModule.forRootAsync({ useClass: Options });", "Write FloodgateModule.fo"],
    [
      "options beside the limits",
      "ThrottlerModule.forRoot({ throttlers: [{ ttl: 1000, limit: 1 }], storage });",
      "`storage`: Write `store:",
    ],
    ["a guard of the app's own", "class Guard extends ThrottlerGuard {}", "Write `key`, `skip` and "],
    ["a limit with another name", "@Throttle({ short: { limit: 1, ttl: 1000 } }) class A {}", "Write @RateLimit({ limit"],
    ["a duration of the library", "ThrottlerModule.forRoot([{ ttl: minutes(1), limit: 1 }]);", "Write a duration with it"],
    ["a filter", "@Catch(ThrottlerException) class Filter {}", "Write `RateLimitExceptio"],
  ])("leaves a file as it is with %s", (_, line, message) => {
    const code = `import { minutes, SkipThrottle, Throttle, ThrottlerException, ThrottlerGuard, ThrottlerModule } from "@nestjs/throttler";\n${line}\n@SkipThrottle() class B {}\n`;
    const result = migrated(code);
    expect(todo(result)).toEqual([`2 ${message}`]);
    expect(result.code).toBe(code);
    expect(result.calls.every(({ after }) => after === undefined)).toBe(true);
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
