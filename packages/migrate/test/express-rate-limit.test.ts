import { describe, expect, it } from "vitest";
import { rewritten, todo } from "./rewritten.js";

// tools/migration runs what is written, beside the original.

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

  it.each([
    ["handler: (req, res) => res.end()", "onLimited: (req, res) => res.end()"],
    [
      "message: a || b, handler: (req, res, next, o) => res.status(429).json(o.message.e)",
      "onLimited: (req, res) => res.status(429).json((a || b).e)",
    ],
    [
      "handler: (req, res, next, o) => res.status(o.statusCode).json({ after: Math.ceil(o.windowMs / 1000), of: o.limit })",
      "onLimited: (req, res) => res.status(429).json({ after: Math.ceil(60000 / 1000), of: 5 })",
    ],
    ["statusCode: 503", 'onLimited: (req, res) => res.status(503).send("Too many requests, please try again later.")'],
    ['message: async (req) => req.t("slow")', 'onLimited: async (req, res) => res.send(await (async (req) => req.t("slow"))(req, res))'],
    ["skipFailedRequests: true, requestWasSuccessful: (req, res) => res.statusCode !== 401", "refundWhen: (status) => !(status !== 401)"],
    ["keyGenerator: (req) => req.ip", ""],
    ["keyGenerator: (req, res) => req.user.id", "key: (req) => req.user.id"],
    ["keyGenerator: req => req.user?.id ?? req.ip", "key: (req, { ip }) => req.user?.id ?? ip"],
    ["keyGenerator(req) { return req.user.id; }", "key(req) { return req.user.id; }"],
    ["keyGenerator: (req) => { const ip = req.ip; return ip; }", "key: (req, { ip: address }) => { const ip = address; return ip; }"],
    ["keyGenerator: keys.client", "key: keys.client"],
    ["keyGenerator: perUser ? byUser : undefined", "key: perUser ? byUser : undefined"],
    ["ipv6Subnet: false", "ipv6Prefix: 128"],
    ["store: new erl.MemoryStore(), passOnStoreError: true, validate: false, delayMs: 0", ""],
    ["limit: async (req) => limitOf(req)", 'policy: async (req) => slidingWindowCounter({ limit: await (limitOf(req)), window: "1m" })'],
    ["limit: (req, res) => req.n", 'policy: (req) => slidingWindowCounter({ limit: req.n, window: "1m" })'],
    [
      "limit: async (req, res) => { return req.n; }",
      'policy: async (request) => slidingWindowCounter({ limit: await (async (req) => { return req.n; })(request), window: "1m" })',
    ],
    ["windowMs: (Number(env) || 60) * 1000", "window: (Number(env) || 60) * 1000"],
    ['skip: (req) => req.path === "/health"', 'skip: (req) => req.path === "/health"'],
    ["skip: (req) => req.user", "skip: (req) => Boolean(req.user)"],
    ["skip: (req) => isAdmin(req)", "skip: async (req) => Boolean(await (isAdmin(req)))"],
    ["skip: isAdmin", "skip: async (req) => Boolean(await isAdmin(req))"],
    ["skip: options.skip", "skip: async (req) => Boolean(await options.skip?.(req))"],
    ["skip: dev ? () => true : undefined", "skip: async (req) => Boolean(await (dev ? () => true : undefined)?.(req))"],
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
    ["max: dev ? 0 : 100", "A limit of 0 rejects eve"],
    ["max: Number(process.env.MAX) || 0", "A limit of 0 rejects eve"],
    ['max: (req) => (req.method === "OPTIONS" ? 0 : 100)', "A limit of 0 rejects eve"],
    ["limit: async (req) => { if (await isPro(req)) return 0; return 5; }", "A limit of 0 rejects eve"],
    ['max: "5"', "`limit` must be a number"],
    ["max: 5, limit: 6", "This option is given twi"],
    ["skip: (req, res) => res.locals.admin", "`skip` gets the request,"],
    ["keyGenerator: (req, res) => res.locals.user", "`key` gets the request a"],
    ["handler: (req, res, next) => next(new Error())", "`onLimited` gets (req, r"],
    ["store: new MongoStore()", "Write `store: redisStore"],
    ["...options", "Options that are spread "],
    ["constructor: 1", "`constructor`: Floodgate"],
    ["max: -1", "`limit` must be a number"],
    ["max: 2.5", "`limit` must be a number"],
    ["max: 5, delayMs: 500", "Only old versions delay "],
    ["max: 5, skip: function (req) { return this.store.isOpen; }", "Here `this` is not the o"],
    ["max: 5, keyGenerator(req) { return [1].map(() => this.prefix) + req.id; }", "Here `this` is not the o"],
    ["max: 5, delayAfter: 2", "`delayAfter`: Only old v"],
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

  it("names code for requests above the limit, which none is here", () => {
    const handler = (condition: string) =>
      `rateLimit({ max: 5, handler: (req, res) => { if (${condition}) log(); res.sendStatus(429); } });\n`;
    for (const condition of [
      "req.rateLimit.used === req.rateLimit.limit + 1",
      "(req as any).rateLimit.current > req.rateLimit.limit",
      "limit < req.rateLimit.used",
    ])
      expect(todo(rewritten(head + handler(condition)))).toEqual(["2 `used` is never above `l"]);
    for (const condition of ["req.rateLimit.used > 3", "req.rateLimit.remaining < req.rateLimit.limit"])
      expect(todo(rewritten(head + handler(condition)))).toEqual([]);
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
    ["{ windowMs: 1000, max: 5 // five\n}", '{ window: "1s", limit: 5, // five\nheaders: "legacy"\n}'],
    ["{ max: 5, // five\n  windowMs: 1000 // one\n}", '{ limit: 5, // five\n  window: "1s", // one\n  headers: "legacy"\n}'],
    ["{ windowMs: 1000, max: 5, /* five */\n}", '{ window: "1s", limit: 5, /* five */\nheaders: "legacy",\n}'],
    ["{ windowMs: 1000, max: 5, /* five */ }", '{ window: "1s", limit: 5, /* five */ headers: "legacy", }'],
    ["{ windowMs: 1000, max: 5 /* five */ }", '{ window: "1s", limit: 5 /* five */, headers: "legacy" }'],
  ])("writes the options %j as %j", (theirs, ours) => {
    expect(rewritten(`${head}rateLimit(${theirs});\n`).code).toBe(`import { rateLimit } from "@floodgate/express";\nrateLimit(${ours});\n`);
  });

  it("leaves a limit of 0 that stands elsewhere in the file", () => {
    for (const declared of ["const max = 0;", "const max = dev ? 0 : 100;", "function max(req) { return req.user ? 0 : 100; }"])
      expect(todo(rewritten(`${head}${declared}\nrateLimit({ max });\n`))).toEqual(["3 A limit of 0 rejects eve"]);
    expect(todo(rewritten(`${head}rateLimit({ max: (req) => list.length > 0 ? list[0] : sum(0) });\n`))).toEqual([]);
  });

  it("leaves a draft that neither library knows", () => {
    expect(todo(rewritten(`${head}rateLimit({ max: 5, standardHeaders: "draft-9" });\n`))).toEqual(['2 Write `headers: "standar']);
  });

  it("reads functions that are exported, or have a type of their own", () => {
    const code = (read: string) => `${head}export const isOpen = (req, res): boolean => ${read};
const keyOf: KeyGenerator = (req, res) => ${read};
rateLimit({ max: 5, windowMs: 1000, skip: isOpen, keyGenerator: keyOf });
`;
    expect(todo(rewritten(code("res.locals.id")))).toEqual(["4 `skip` gets the request,", "4 `key` gets the request a"]);
  });

  it("passes on options that a factory may not have got", () => {
    const { code, byHand } = rewritten(
      `${head}export const of = ({ keyGenerator, skip }) => rateLimit({ limit: 5, windowMs: 1000, keyGenerator, skip });\n`,
    );
    expect(byHand).toEqual([]);
    expect(code).toContain('limit: 5, window: "1s", key: keyGenerator, skip: async (req) => Boolean(await skip?.(req)), headers');
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
    ["max: process.env.MAX ? process.env.MAX : 100", "limit: Number(process.env.MAX ? process.env.MAX : 100)"],
    ["max: parseInt(process.env.MAX) || 100", "limit: parseInt(process.env.MAX) || 100"],
    ["max: 5, windowMs: process.env.WINDOW || 1000", "limit: 5, window: Number(process.env.WINDOW || 1000)"],
    ["max: MAX", "limit: Number(MAX)", "const { MAX = 100 } = process.env;"],
    ["max", "limit: Number(max)", "const { MAX: max } = process.env;"],
    ["limit", "limit: Number(limit)", "export const limit = process.env.MAX || 100;"],
    ["max: env.MAX ?? 100", "limit: Number(env.MAX ?? 100)", "const env = process.env;"],
    ["max: MAX || 100", "limit: Number(MAX || 100)", "const env = import.meta.env, { MAX } = env;"],
    ["max: MAX", "limit: MAX", "const MAX = parseInt(process.env.MAX) || 100;"],
    ["max: MAX", "limit: MAX", "const { MAX = 100 } = config;"],
  ])("reads a text of the environment as a number: %s", (theirs, ours, declared = "") => {
    expect(rewritten(`${head}${declared}rateLimit({ ${theirs} });\n`).code).toContain(`rateLimit({ ${ours}, `);
  });

  it.each([
    ["ipKeyGenerator(req.ip, 64)", "", "ipv6Prefix: 64"],
    ["ipKeyGenerator(req.ip ?? '', false)", "", "ipv6Prefix: 128"],
    ["ipKeyGenerator(req.ip, 56)", "", ""],
    ["ipKeyGenerator(req.ip)", "ipv6Subnet: 64, ", "ipv6Prefix: 56"],
    ["ipKeyGenerator(req.ip, 48)", "ipv6Subnet: 64, ", "ipv6Prefix: 48"],
  ])("makes the size of ipKeyGenerator an option: %s", (key, more, ours) => {
    const code = `import { ipKeyGenerator, rateLimit } from "express-rate-limit";\nrateLimit({ max: 5, ${more}keyGenerator: (req) => \`a:\${${key}}\` });\n`;
    const result = rewritten(code);
    expect(todo(result)).toEqual([]);
    expect(result.code).toContain(`key: (req, { ip }) => \`a:\${ip}\``);
    expect(/ipv6\w+: \d+/.exec(result.code)?.[0] ?? "").toBe(ours);
  });

  it.each([
    ["ipKeyGenerator(req.ip, size)"],
    ['ipKeyGenerator(req.headers["cf-connecting-ip"])'],
    ['"ip:" + ipKeyGenerator(req.get("x-real-ip") ?? req.ip)'],
  ])("leaves a key of another address or network to do by hand: %s", (key) => {
    const code = `import { ipKeyGenerator, rateLimit } from "express-rate-limit";\nrateLimit({ max: 5, keyGenerator: (req) => ${key} });\n`;
    expect(todo(rewritten(code))).toEqual(["2 `ipKeyGenerator`: write "]);
    expect(rewritten(code).code).toBe(code);
  });

  it("names the delays of express-slow-down, which may stay beside Floodgate", () => {
    const slow = 'import slowDown from "express-slow-down";\nexport const slow = slowDown({ delayAfter: 5 });\n';
    const result = rewritten(`${head}${slow}export const limit = rateLimit({ max: 5 });\n`);
    expect(todo(result)).toEqual(["3 This works beside Floodg"]);
    expect(result.code).toContain(`import { rateLimit } from "@floodgate/express";\n${slow}export const limit = rateLimit({ limit: 5,`);
    expect(todo(rewritten(slow))).toEqual(["2 This works beside Floodg"]);
  });

  it.each([
    ["a handler that sets no status", "handler: (req, res) => res.json({ error: 1 })", ["A `handler` that sets no"]],
    [
      "a handler whose body tells a status",
      'handler: (req, res) => res.render("error", { code: 429, status: "limited" })',
      ["A `handler` that sets no"],
    ],
    [
      "a handler that redirects some requests",
      "handler: (req, res) => (req.id ? res.redirect(req.id) : res.json({}))",
      ["A `handler` that sets no"],
    ],
    ["a handler that sets a status", "handler: (req, res) => res.status(503).end()", []],
    ["a handler that gives a status to a function", "handler: (req, res) => reply(res, 503)", []],
    ["a handler that redirects", 'handler: (req, res) => res.redirect("/slow")', []],
    ["a window of milliseconds", "windowMs: 60", ["This is 60 milliseconds,"]],
    ["a key that may be an object", "keyGenerator: (req) => req.user?._id ?? req.sessionID", ["A key is a text or a num"]],
    ["a key that is a text of an object", "keyGenerator: (req) => req.user._id.toString() + String(req.team._id)", []],
    ["a key of a header", 'keyGenerator: (req) => req.get("true-client-ip")', ["Anyone can send this hea"]],
  ])("notes %s", (_, options, expected) => {
    const { notes } = rewritten(`${head}rateLimit({ max: 5, ${options} });\n`);
    expect(notes.map(({ message }) => message.slice(0, 24))).toEqual(expected);
  });

  it.each([
    ['app.set("trust proxy", true);', 1],
    ["app.enable('trust proxy');", 1],
    ['app.set("trust proxy", 1);', 0],
  ])("names a setting with which Floodgate fails: %s", (line, count) => {
    expect(rewritten(`${head}${line}\nrateLimit({ max: 5 });\n`).byHand).toHaveLength(count);
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
