import { describe, expect, it } from "vitest";
import type { Library, Migration } from "../src/index.js";
import { migrate } from "../src/index.js";
import { rewritten, todo } from "./rewritten.js";

// tools/migration runs what is written, beside the original.

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

  it("ends the lines that it adds as the file does", () => {
    const { code } = rewritten(
      'import limit from "koa-ratelimit";\r\nlimit({\r\n  driver: "memory",\r\n  status: 503,\r\n  disableHeader: true,\r\n});\r\n',
      "koa-ratelimit",
    );
    expect(code).toContain("{\r\n    ctx.status = 503;\r\n    ctx.body = ");
    expect(code.replaceAll("\r\n", "")).not.toContain("\n");
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
    ["keyGenerator", "key: keyGenerator"],
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
    const binding = 'import { cloudflareRateLimiter } from "@hono-rate-limiter/cloudflare";\napp.use(cloudflareRateLimiter({}));\n';
    expect(todo(rewritten(binding, "hono-rate-limiter"))).toEqual(["1 @hono-rate-limiter/cloud"]);
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
  app.get('/slow', { config: { rateLimit: { limit: 5, window: "1m" } } }, slow)
  app.get('/free', { config: { rateLimit: false } }, free)
}
`);
  });

  it.each([
    ["app.register(require('@fastify/rate-limit'), {", "app.register(require('@floodgate/fastify').rateLimit({"],
    ["await app.register(import('@fastify/rate-limit'), {", "await app.register((await import('@floodgate/fastify')).rateLimit({"],
  ])("rewrites the plugin where it is loaded: %s", (theirs, ours) => {
    const { code, byHand } = migrated(`${theirs} max: 5, timeWindow: 1000 })\n`);
    expect(byHand).toEqual([]);
    expect(code).toBe(`${ours} limit: 5, window: "1s", headers: "legacy" }))\n`);
  });

  it("writes the defaults of a plugin without options", () => {
    const { code } = migrated(`import plugin from "@fastify/rate-limit";\napp.register(plugin);\n`);
    expect(code).toContain('app.register(rateLimit({ limit: 1000, window: "1m", headers: "legacy" }));');
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
    expect(
      migrated(`const strict = { max: 5, timeWindow: 1000 };\napp.get("/", { config: { rateLimit: strict } }, handler);\n`).code,
    ).toContain('{ limit: 5, window: "1s" };');
    expect(migrate("@fastify/rate-limit", "app.ts", "export const settings = { rateLimit: { max: 5 } };\n")).toBeUndefined();
  });

  it.each([
    ["allowList: ['127.0.0.1']", "exempt: { ips: ['127.0.0.1'] }"],
    ["allowList: (request, key) => request.url === '/'", "skip: (request) => request.url === '/'"],
    ["hook: 'preHandler'", "hook: 'preHandler'"],
    ["groupId: 'a', addHeaders: { 'x-ratelimit-limit': true, 'retry-after': true }", "name: 'a'"],
    ["keyGenerator: (request) => request.user ?? request.ip", "key: (request, { ip }) => request.user ?? ip"],
  ])("writes %s as %s", (theirs, ours) => {
    const { code, byHand } = migrated(
      `import plugin from "@fastify/rate-limit";\napp.register(plugin, { max: 5, timeWindow: "2 hours", ${theirs} });\n`,
    );
    expect(code.split("\n")[1]).toBe(`app.register(rateLimit({ limit: 5, window: "2h", ${ours}, headers: "legacy" }));`);
    expect(byHand).toEqual([]);
  });

  it("gives a route what it takes from the plugin, because a limit and its window go together", () => {
    const file = (plugin: string, route: string) =>
      `import plugin from "@fastify/rate-limit";\n${plugin}\napp.get("/", { config: { rateLimit: ${route} } }, get);\n`;
    for (const [plugin, route, ours] of [
      ["app.register(plugin);", "{ max: 5 }", '{ limit: 5, window: "1m" }'],
      ['app.register(plugin, { timeWindow: "1 hour" });', "{ max: 5 }", '{ limit: 5, window: "1h" }'],
      ["app.register(plugin, { global: false, max: 7 });", "{ timeWindow: 1000 }", '{ window: "1s", limit: 7 }'],
      ["app.register(plugin, { max: 7 });", '{ groupId: "a" }', '{ name: "a" }'],
    ] as const) {
      const { code, byHand } = migrated(file(plugin, route));
      expect(byHand).toEqual([]);
      expect(code).toContain(`rateLimit: ${ours} }`);
    }
    for (const plugin of ["app.register(plugin, { timeWindow });", "app.register(plugin, { ...options });", ""])
      expect(todo(migrated(file(plugin, "{ max: 5 }")))).toContain("3 The other of `limit` and");
    expect(migrated(file("app.register(plugin, { global: false, max: 7 });", "{}")).code).toContain(
      'rateLimit({ global: false, limit: 7, window: "1m", headers: "legacy" })',
    );
  });

  it("leaves to a person what has no equal", () => {
    const result = migrated(`import plugin from "@fastify/rate-limit";
app.register(plugin, { max: async () => 5 });
app.register(plugin, { errorResponseBuilder: () => ({}), hook: "onSend", addHeaders: { "retry-after": false } });
app.register(plugin, options);
app.get("/", { preHandler: app.rateLimit() });
app.register(import("@fastify/rate-limit"), {});
`);
    expect(todo(result)).toEqual([
      "2 A limit of each request'",
      "3 `errorResponseBuilder`: ",
      '3 Write `hook: "onRequest"',
      "3 Header names are fixed. ",
      "4 The options are not an o",
      "6 Dynamic imports are not ",
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
  @Throttle({ default: { limit: 2, ttl: 1000 } })
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
  @RateLimit({ limit: 2, window: "1s" })
  post() {}
  @SkipRateLimit()
  one() {}
  @SkipRateLimit(false)
  two() {}
}
`);
  });

  it("keeps comments and the indent where a list around the options goes", () => {
    const lines = (...all: string[]) => all.join("\r\n");
    const { code } = migrated(
      lines(
        'import { ThrottlerModule } from "@nestjs/throttler";',
        "\tThrottlerModule.forRoot([",
        "\t\t// for each client",
        "\t\t{",
        "\t\t\tttl: 60_000, // a minute",
        "\t\t\tlimit: 10,",
        "\t\t}, /* one limit */",
        "\t]);",
        "",
      ),
    );
    expect(code).toBe(
      lines(
        'import { FloodgateModule } from "@floodgate/nestjs";',
        "\tFloodgateModule.forRoot( // for each client",
        "{",
        '\t\twindow: "1m", // a minute',
        "\t\tlimit: 10,",
        '\t\tkey: ["ip", "route"],',
        '\t\theaders: "legacy",',
        "\t} /* one limit */);",
        "",
      ),
    );
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
other.consume(ip).then(next).catch(({ msBeforeNext }) => reject(msBeforeNext), (res) => wait(res.msBeforeNext));
exports.logins.delete(user);
new Map().delete(user);
const consume = other.consume.bind(other);
`,
      [
        "2 Write createLimiter({ na",
        "2 `blockDuration`: after a",
        "4 `consume` rejects its pr",
        "4 `msBeforeNext`: write `r",
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
