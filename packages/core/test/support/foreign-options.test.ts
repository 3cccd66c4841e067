import { describe, expect, it } from "vitest";
import { calendarWindow, concurrency, createLimiter, fixedWindow, leakyBucket, tokenBucket } from "../../src/index.js";
import { checkRateLimitOptions } from "../../src/middleware/rate-limit-options.js";
import { foreignAdvice } from "../../src/support/foreign-options.js";
import { checkOptions } from "../../src/support/options.js";

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    expect(error).toMatchObject({ code: "FLOODGATE_UNKNOWN_OPTION" });
    return (error as Error).message;
  }
  throw new Error("nothing was refused");
}

const refusedByRateLimit = (options: object): string =>
  messageOf(() => checkRateLimitOptions("rateLimit", options as never, ["onLimited"]));

/** What each library calls an option, with a value, and what to write for it. */
const peers: Record<string, [options: object, advice: string][]> = {
  "express-rate-limit": [
    [{ windowMs: 15 * 60 * 1000 }, 'Write window: "15m".'],
    [{ windowMs: 1500 }, 'Write window: "1500ms".'],
    [{ windowMs: 86_400_000 }, 'Write window: "1d".'],
    [{ max: 100 }, "Write limit: 100."],
    [{ max: 0 }, "Write limit: 0."],
    [{ windowMs: 60_000, max: () => 5 }, 'Write window: "1m". It has no option `max`. Write limit: 100.'],
    [{ message: "Slow down" }, 'Write body: "Slow down".'],
    [{ message: { error: "no" } }, 'Write body: "Too many requests".'],
    [{ statusCode: 503 }, 'Write onLimited: (req, res) => res.status(429).send("Slow down"), in Koa and Hono (c) => ....'],
    [{ handler: () => {} }, "Write onLimited: "],
    [{ onLimitReached: () => {} }, "Write onEvent: "],
    [
      { standardHeaders: "draft-7", legacyHeaders: false },
      'no options `standardHeaders` and `legacyHeaders`. Write headers: "standard", "draft-7", "draft-6", "legacy", ["standard", "legacy"] or false.',
    ],
    [
      { algorithm: "token-bucket" },
      'Write policy: tokenBucket({ capacity: 20, refill: 10, every: "1s" }), or the function of another algorithm.',
    ],
    [{ trustProxy: 1 }, "Write clientIp: { trustedHops: 1 }, or { trustedProxies: ["],
    [{ identifier: "api" }, 'Write name: "api".'],
    [{ requestPropertyName: "quota" }, 'Write decisionName: "quota".'],
    [{ keyGenerator: () => "k" }, "Write key: (req) => req.user.id"],
    [{ ipv6Subnet: 64 }, "Write ipv6Prefix: 64."],
    [{ skipFailedRequests: true }, "Write refundWhen: (status) => status < 400 for successes, or status >= 400 for failures."],
    [{ skipSuccessfulRequests: true }, "Write refundWhen: (status) => status < 400"],
    [{ requestWasSuccessful: () => true }, "Write refundWhen: (status) => status < 400"],
    [{ passOnStoreError: true }, 'Write onStoreError: "allow", "deny", or memoryStore().'],
    [{ validate: false }, "Leave it out: options are always checked"],
    [{ logger: {} }, "Write onEvent: "],
  ],
  "rate-limiter-flexible": [
    [{ points: 5, duration: 60 }, 'Write limit: 5. It has no option `duration`. Write window: "1m".'],
    [{ duration: 3600 }, 'Write window: "1h".'],
    [{ keyPrefix: "login" }, 'Write name: "login".'],
    [{ points: 5, duration: 60, blockDuration: 600 }, 'Write ban: { after: 10, within: "1m", for: "1h" }, or limiter.block(key, "1h").'],
    [{ execEvenly: true }, "Write policy: leakyBucket({"],
    [{ storeClient: {} }, "Write store: redisStore(redis) of @floodgate/store-redis, or memoryStore()."],
    [{ insuranceLimiter: {} }, "Write onStoreError: "],
    [{ inMemoryBlockOnConsumed: 5 }, "redisStore has such a cache"],
    [{ inMemoryBlockDuration: 5 }, "redisStore has such a cache"],
    [{ whiteList: ["127.0.0.1"] }, 'Write exempt: { ips: ["10.0.0.0/8"] }, or `skip`.'],
    [{ blackList: ["10.0.0.1"] }, "Reject such clients"],
  ],
  "@upstash/ratelimit": [
    [{ redis: {} }, "Write store: redisStore(redis)"],
    [{ limiter: {} }, "Write policy: slidingWindowCounter({"],
    [{ prefix: "api" }, 'Write name: "api".'],
    [{ timeout: 1000 }, "Write timeoutMs: 1000."],
    [{ ephemeralCache: new Map() }, "redisStore has such a cache"],
    [{ analytics: true }, "Write onEvent: "],
    [{ dynamicLimits: true }, "Write rules: ["],
  ],
  "koa-ratelimit": [
    [{ driver: "memory", db: new Map() }, "no options `driver` and `db`. Write store: "],
    [{ driver: "redis" }, "Write store: redisStore(redis)"],
    [{ duration: 60_000, max: 5 }, 'Write window: "1m". It has no option `max`. Write limit: 5.'],
    [{ id: () => "k" }, "Write key: (req) => req.user.id"],
    [{ errorMessage: "Slow down" }, 'Write body: "Slow down".'],
    [{ disableHeader: true }, "Write headers: "],
    [{ whitelist: () => true }, "Write exempt: "],
    [{ blacklist: () => true }, "Reject such clients"],
    [{ throw: true }, "Write onLimited: "],
    [{ namespace: "limit" }, 'Write name: "limit".'],
    [{ status: 503 }, "Write onLimited: "],
  ],
  "hono-rate-limiter": [
    [{ requestStorePropertyName: "store" }, "the middleware has a `limiter`"],
    [{ binding: {} }, "Write store: "],
  ],
  "@fastify/rate-limit": [
    [{ timeWindow: "1 minute" }, 'Write window: "1m".'],
    [{ timeWindow: 1000 }, 'Write window: "1s".'],
    [{ timeWindow: "a fortnight" }, 'Write window: "15m".'],
    [{ cache: 5000 }, "Write store: "],
    [{ allowList: ["10.0.0.0/8", "::1"] }, "Write exempt: "],
    [{ max: 5, timeWindow: 1000, continueExceeding: true }, 'policy: slidingWindowLog({ limit: 100, window: "1m", countRejected: true })'],
    [{ exponentialBackoff: true }, "Write ban: {"],
    [{ groupId: "a" }, 'Write name: "a".'],
    [{ onExceeding: () => {} }, "Write onEvent: "],
    [{ onExceeded: () => {} }, "Write onEvent: "],
    [{ onBanReach: () => {} }, "Write onEvent: "],
    [{ errorResponseBuilder: () => ({}) }, "Write body: "],
    [{ skipOnError: true }, 'Write onStoreError: "allow"'],
    [{ addHeaders: {} }, "Write headers: "],
    [{ nameSpace: "a" }, 'Write name: "a".'],
  ],
  "@nestjs/throttler": [
    [{ ttl: 60_000 }, 'Write window: "1m".'],
    [{ ttl: 60 }, 'Write window: "1m".'],
    [{ ttl: 60_000, blockDuration: 300_000 }, "Write ban: "],
    [{ throttlers: [] }, "Write rules: ["],
    [{ ignoreUserAgents: [] }, "Write skip: "],
    [{ getTracker: () => "k" }, "Write key: "],
    [{ skipIf: () => true }, "Write skip: "],
  ],
};

describe.each(Object.entries(peers))("an option of %s is answered by what to write here", (_, options) => {
  it.each(options)("%j: %s", (given, advice) => {
    expect(refusedByRateLimit(given)).toContain(advice);
  });
});

describe("an option of another library", () => {
  it("is answered by what there is where it was given", () => {
    const limiter = (options: object) => messageOf(() => createLimiter({ name: "api", ...options } as never));
    expect(limiter({ points: 5, duration: 60 })).toBe(
      'createLimiter has no options `points` and `duration`. Write policy: slidingWindowCounter({ limit: 100, window: "1m" }).',
    );
    expect(limiter({ blockDuration: 600 })).toContain('limiter.block(key, "1h").');
    expect(limiter({ keyGenerator: () => "k" })).toContain("a limiter takes it in consume(key).");
    expect(messageOf(() => fixedWindow({ points: 5, duration: 60 } as never))).toContain("limit: 5. It has no option `duration`");
    expect(messageOf(() => tokenBucket({ limit: 5, window: 1000 } as never))).toBe(
      'tokenBucket has no option `limit`. Write capacity: 5. It has no option `window`. Write every: "1s".',
    );
    expect(messageOf(() => leakyBucket({ max: 5 } as never))).toContain("Write capacity: 5.");
    expect(messageOf(() => checkOptions("memoryStore", { max: 5, ttl: 1 }, ["maxKeys"], ""))).toContain("Write maxKeys: 5.");
    expect(messageOf(() => checkOptions("redisStore", { keyPrefix: "app" }, ["prefix"], ""))).toContain('Write prefix: "app".');
  });

  it("is answered in a rule by where it belongs", () => {
    const rule = ["name", "match", "limit", "window", "policy"];
    for (const word of ["path", "method"])
      expect(foreignAdvice(word, { [word]: "/x" }, rule)).toBe('Write match: { method: "POST", path: "/posts" }.');
  });

  it("is a limit in `rateLimit`, and a cost where only a cost can be given", () => {
    expect(refusedByRateLimit({ rate: "10r/s" })).toBe("rateLimit has no option `rate`. Write limit: 100.");
    expect(foreignAdvice("rate", { rate: 3 }, ["cost"])).toBe("Write cost: 3.");
  });

  it("is answered in a ban by the ban's own options", () => {
    const where = ["after", "within", "for"];
    const refused = (options: object) => messageOf(() => checkOptions("rateLimit: ban", options, where, ""));
    expect(refused({ duration: "1h" })).toContain('Write for: "1h".');
    expect(refused({ blockDuration: 60 })).toContain('Write for: "1m".');
    expect(refused({ windowMs: 60_000, max: 5 })).toContain('Write within: "1m". It has no option `max`. Write after: 5.');
  });

  it("is said to be one of rateLimit where it can only be given there", () => {
    const refused = messageOf(() => checkOptions("rules[0]", { refundWhen: () => true, skip: () => true }, ["name", "limit"], ""));
    expect(refused).toMatch(/no option `refundWhen`. That is an option of rateLimit: refundWhen: \(status\) =>/);
    expect(refused).toMatch(/no option `skip`. That is an option of rateLimit/);
    for (const word of ["message", "body"]) {
      expect(messageOf(() => checkOptions("rules[0]", { [word]: "no" }, ["name", "limit"], ""))).toBe(
        `rules[0] has no option \`${word}\`. That is an option of rateLimit: body: "no".`,
      );
    }
  });

  it("is never said to be one of rateLimit where rateLimit lacks it, or beside a policy of which nothing was asked", () => {
    for (const word of ["refill", "leak", "burst", "buckets", "strict", "style", "countRejected", "maxDelayMs"]) {
      expect(refusedByRateLimit({ [word]: 5 })).toMatch(/Write policy: tokenBucket\(\{ .*\}\), or the function of another algorithm\.$/);
    }
    for (const word of ["per", "timeZone", "startsOn"]) {
      expect(refusedByRateLimit({ [word]: "day" })).toContain('Write policy: calendarWindow({ limit: 1000, per: "month" }).');
    }
    expect(refusedByRateLimit({ after: 5, within: "1m", for: "1h" })).toBe(
      'rateLimit has no options `after` and `within` and `for`. Write ban: { after: 10, within: "1m", for: "1h" }, or limiter.block(key, "1h").',
    );
    expect(refusedByRateLimit({ maxKeys: 5 })).toContain("Write store: memoryStore({ maxKeys: 100_000 }).");
    expect(messageOf(() => concurrency({ limit: 3, window: "1s" } as never))).toBe(
      "concurrency has no option `window`. The options are limit, hold.",
    );
    expect(messageOf(() => calendarWindow({ limit: 3, window: "1d" } as never))).toMatch(
      /no option `window`\. The options are limit, per, /,
    );
    expect(messageOf(() => checkOptions("redisStore", { ttl: 5 }, ["prefix"], ""))).toBe(
      "redisStore has no option `ttl`. The options are prefix.",
    );
    expect(messageOf(() => checkOptions("rateLimit: exempt", { key: "a" }, ["ips", "keys"], ""))).toContain("Did you mean `keys`?");
  });

  it("is answered in a bucket by the bucket's own options", () => {
    expect(messageOf(() => tokenBucket({ capacity: 10, rate: 5, per: "1s" } as never))).toBe(
      'tokenBucket has no option `rate`. Write refill: 5. It has no option `per`. Write every: "1s".',
    );
    expect(messageOf(() => leakyBucket({ capacity: 10, refill: 5 } as never))).toBe("leakyBucket has no option `refill`. Write leak: 5.");
    expect(messageOf(() => tokenBucket({ burst: 10 } as never))).toBe("tokenBucket has no option `burst`. Write capacity: 10.");
  });

  it("is reported together with a misspelt one; one error lists at most twelve", () => {
    expect(refusedByRateLimit({ windowMs: 1000, limt: 5 })).toMatch(/`windowMs`. Write window: "1s". It has no option `limt`. Did you/);
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`word${i}`, i]));
    expect(refusedByRateLimit(many)).toMatch(/`word11`\. The options are/);
  });

  it("shows no value that may be a secret or that is long", () => {
    expect(refusedByRateLimit({ redis: "redis://:hunter2@10.0.0.1" })).not.toContain("hunter2");
    expect(refusedByRateLimit({ message: "x".repeat(1000) }).length).toBeLessThan(200);
  });

  it("is not taken for one because an object has a property of that name", () => {
    for (const word of ["constructor", "toString", "__proto__", "hasOwnProperty", "valueOf"])
      expect(foreignAdvice(word, {}, [])).toBeUndefined();
  });
});
