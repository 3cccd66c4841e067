import { type Library, migrate } from "@floodgate/migrate";
import fc from "fast-check";
import { expect, it } from "vitest";
import { load } from "./page.js";

// Whatever options a call has: it is rewritten so that `rateLimit` takes it, or it stays as it is and is named.

const common = [
  ...["windowMs: 1000", "windowMs: 15 * 60 * 1000", "windowMs: Number(env.none) || 60000", "windowMs: 0", "windowMs: 1.5", "windowMs"],
  ...["limit: 5", "limit: Number(env.none) || 5", "limit: on ? 5 : Infinity", "limit: 0", "limit", "limit: () => 5", "limit: NaN"],
  ...["skip: () => 0", "skip", "skip: async () => false", "skip() { return false; }", "skip: undefined"],
  ...["message: { error: 1 }", 'message: "slow"', "message: () => 1", "statusCode: 503", "statusCode: 429", "message"],
  ...["handler", "handler: (a, b) => b", "keyGenerator", 'keyGenerator: (a) => a.id ?? "x"', 'keyGenerator() { return "a"; }'],
  ...["skipFailedRequests: true", "skipSuccessfulRequests: false", "standardHeaders: true", 'standardHeaders: "draft-8"'],
  ...["store: new Other()", "requestPropertyName: 'quota'", "...more"],
];

interface Calls {
  readonly ours: string;
  readonly build: string;
  readonly words: readonly string[];
  /** How many different calls are rewritten, at least. Default 100. */
  readonly least?: number;
  /** The code of a call with options. */
  readonly call?: (options: string) => string;
}

const options: Readonly<Record<string, Calls>> = {
  "express-rate-limit": {
    ours: "express",
    build: 'import build from "express-rate-limit";',
    words: [
      ...common,
      ...["max: 7", "legacyHeaders: false", "headers: true", "identifier: 'a'", "ipv6Subnet: 64", "ipv6Subnet: false", "validate: true"],
      ...["passOnStoreError: true", "requestWasSuccessful: (a, b) => b.statusCode < 300", "standardHeaders: false", "logger: console"],
    ],
  },
  "hono-rate-limiter": {
    ours: "hono",
    build: 'import { rateLimiter as build } from "hono-rate-limiter";',
    words: [...common, "binding: on", "standardHeaders: false", "requestWasSuccessful: (c) => c.res.ok"],
  },
  "koa-ratelimit": {
    ours: "koa",
    build: 'import build from "koa-ratelimit";',
    words: [
      ...["driver: 'memory'", "driver", "db: new Map()", "duration: 60000", "duration: Number(env.none) || 1000", "duration"],
      ...["max: 5", "max: on ? 5 : Infinity", "max: 0", "id: (ctx) => ctx.ip", "id: () => false", "id", "namespace: 'a'"],
      ...["errorMessage: 'slow'", "errorMessage: { a: 1 }", "errorMessage: () => 1", "throw: true", "throw: on", "status: 503", "status"],
      ...["headers: { total: 'T' }", "disableHeader: true", "disableHeader: on", "whitelist: () => {}", "whitelist", "blacklist: () => 1"],
    ],
  },
  "@fastify/rate-limit": {
    ours: "fastify",
    least: 80,
    build: 'import build from "@fastify/rate-limit";',
    call: (words) => `app.register(build, { ${words} })`,
    words: [
      ...["max: 5", "max: Number(env.none) || 5", "max: on ? 5 : Infinity", "max: 0", "max", "max: () => 5", "global: false", "global: on"],
      ...["timeWindow: 60000", "timeWindow: '1 minute'", "timeWindow: '2h'", "timeWindow: 'soon'", "timeWindow: () => 5"],
      ...[
        "keyGenerator: (a) => a.ip",
        "keyGenerator: (a) => a.headers.x",
        "keyGenerator: (a, b) => b",
        "hook: 'preHandler'",
        "hook: 'onSend'",
      ],
      ...["allowList: ['127.0.0.1']", "allowList: (a, b) => a.url === '/'", "allowList: (a, b) => b", "allowList: more", "groupId: 'a'"],
      ...[
        "cache: 500",
        "cache: on",
        "skipOnError: true",
        "ban: 2",
        "continueExceeding: true",
        "enableDraftSpec: true",
        "enableDraftSpec: on",
      ],
      ...["errorResponseBuilder: () => 1", "addHeaders: {}", "onExceeded: () => {}", "...more"],
    ],
  },
  "@nestjs/throttler": {
    ours: "nestjs",
    // It has few options, and most are left to do by hand.
    least: 35,
    build: 'import { ThrottlerModule } from "@nestjs/throttler";',
    call: (words) => `ThrottlerModule.forRoot([{ ${words} }])`,
    words: [
      ...["ttl: 60000", "ttl: 15 * 60 * 1000", "ttl: Number(env.none) || 60000", "ttl: 0", "ttl: () => 5", "ttl: 1.5"],
      ...["limit: 5", "limit: on ? 5 : Infinity", "limit: 0", "limit", "limit: () => 5", "name: 'default'", "name: 'short'"],
      ...[
        "blockDuration: 5",
        "skipIf: () => true",
        "ignoreUserAgents: [/a/]",
        "getTracker: () => 'a'",
        "setHeaders: false",
        "setHeaders: true",
      ],
    ],
  },
};

const names = "const [on, env, limit, windowMs, duration, max] = [true, {}, 9, 60_000, 60_000, 9];";
const more = "const [skip, handler, keyGenerator, whitelist, id] = [() => 1, () => 1, () => 'a', () => 1, () => 'a'];";
const others = "const [message, driver, status, more, Other] = ['slow', 'memory', 503, {}, class {}];";

it.each(Object.entries(options))(
  "%s: each call is rewritten so that rateLimit takes it, or stays and is named",
  async (library, { build, words, ours, least = 100, call: codeOf = (given) => `build({ ${given} })` }) => {
    const some = fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 5, size: "max" });
    // The same calls each time.
    const calls = fc.sample(some, { seed: 7, numRuns: 700 }).map((chosen) => {
      const picked = new Set(chosen);
      if (library === "koa-ratelimit") picked.add("driver: 'memory'");
      // Both are needed there.
      if (library === "@nestjs/throttler") for (const word of ["limit: 5", "ttl: 60000"]) picked.add(word);
      return [...new Map([...picked].map((word) => [/^\w+/.exec(word)?.[0] ?? word, word])).values()].join(", ");
    });
    const rewritten: [call: string, after: string][] = [];
    for (const call of new Set(calls)) {
      const file = `${build}\n${names}\n${more}\n${others}\nexport const made = ${codeOf(call)};\n`;
      const migration = migrate(library as Library, "app.ts", file);
      const after = migration?.calls[0]?.after;
      if (after !== undefined) rewritten.push([call, after]);
      else expect([call, migration?.code, migration?.byHand.some(({ line }) => line === 5)]).toEqual([call, file, true]);
    }
    expect(rewritten.length).toBeGreaterThan(least);
    const code = rewritten.map(([call, after]) => `[${JSON.stringify(call)}, () => ${after}]`).join(",\n");
    const { tried } = await load<{ tried: [string, () => unknown][] }>(
      `import * as ours from "@floodgate/${ours}";\nconst { rateLimit, FloodgateModule, memoryStore, slidingWindowCounter } = ours;\nconst app = { register: (plugin) => plugin };\n${names} ${more} ${others}\nexport const tried = [${code}];`,
    );
    const refused = tried.flatMap(([call, make]) => {
      try {
        make();
        return [];
      } catch (error) {
        return [`${call}: ${(error as Error).message}`];
      }
    });
    expect(refused).toEqual([]);
  },
);
