import {
  calendarWindow,
  clientKey,
  concurrency,
  createLimiter,
  FloodgateError,
  fixedWindow,
  gcra,
  leakyBucket,
  limitFor,
  parseDuration,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { rateLimit as expressLimit } from "@floodgate/express";
import { rateLimit as honoLimit } from "@floodgate/hono";
import { rateLimit as koaLimit } from "@floodgate/koa";
import { rateLimit as nodeLimit } from "@floodgate/node";
import { memoryStore } from "@floodgate/store-memory";
import { redisStore } from "@floodgate/store-redis";
import fc from "fast-check";
import { it } from "vitest";
import { runs } from "../../../test/runs.js";

/** Values that TypeScript forbids but JavaScript and JSON allow. */
const anything: fc.Arbitrary<unknown> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...[undefined, null, Number.NaN, Number.POSITIVE_INFINITY, -0, 0, -1, 0.5, 2 ** 53, 1e308, "1", "1m", Symbol("s"), () => 1],
    ),
  },
  { weight: 1, arbitrary: fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, maxDepth: 1 }) },
);

/** The same, and objects and lists with the words of our own, as for `match`, `ban`, `exempt`, `plans`, `rules` and `policy`. */
const nested = fc.letrec<{ value: unknown; object: object }>((tie) => ({
  value: fc.oneof(
    { weight: 6, arbitrary: anything },
    { weight: 3, arbitrary: tie("object") },
    { weight: 1, arbitrary: fc.array(tie("object"), { maxLength: 2 }) },
  ),
  object: fc.dictionary(
    fc.constantFrom(
      ...["name", "algorithm", "limit", "window", "capacity", "refill", "every", "per", "timeZone", "startsOn", "match", "method", "path"],
      ...["header", "domain", "descriptor", "key", "policy", "plans", "plan", "grants", "until", "ban", "after", "within", "for", "exempt"],
      ...["ips", "keys", "trustedHops", "trustedProxies", "store", "share", "cost", "settle", "mode", "onMissingKey", "rules", "lease"],
      ...["hold", "inHeaders", "__proto__", "constructor", "current", "subscribe", "x-a"],
    ),
    fc.oneof({ depthSize: "small" }, anything, fc.constantFrom("gcra", "fixed-window", "GET", "/a", "1m", "ip", "skip", "a"), tie("value")),
    { maxKeys: 4 },
  ),
})).value;

/** A function with options: how to call it, its option names, and its required options. */
interface Maker {
  readonly make: (options: never) => unknown;
  readonly words: readonly string[];
  readonly needs?: object;
}

const client = { status: "ready", connect: () => Promise.resolve(), evalsha: () => Promise.resolve(), eval: () => Promise.resolve() };

const makers: readonly Maker[] = [
  { make: fixedWindow, words: ["limit", "window"] },
  { make: slidingWindowLog, words: ["limit", "window", "countRejected"] },
  { make: slidingWindowCounter, words: ["limit", "window", "buckets", "strict"] },
  { make: tokenBucket, words: ["capacity", "refill", "every", "style"] },
  { make: leakyBucket, words: ["capacity", "leak", "every", "maxDelayMs"] },
  { make: gcra, words: ["limit", "window", "burst"] },
  { make: concurrency, words: ["limit", "hold"] },
  { make: calendarWindow, words: ["limit", "per", "timeZone", "startsOn"], needs: { limit: 1, per: "day" } },
  { make: (ip) => clientKey(ip), words: ["ip", "ipv6Prefix"] },
  { make: (duration) => parseDuration(duration), words: ["duration"] },
  { make: memoryStore, words: ["maxKeys", "clock", "onEvent"] },
  { make: (redis) => redisStore(redis), words: ["status", "isReady", "isCluster", "evalsha", "sendCommand"] },
  { make: (options) => redisStore(client, options), words: ["prefix", "clock", "denyCache", "lease"] },
  {
    make: createLimiter,
    words: ["name", "policy", "store", "timeoutMs", "onStoreError", "lease", "hold", "onEvent"],
    needs: { name: "api", policy: { algorithm: "fixed-window", limit: 1, window: 1000 }, store: redisStore(client) },
  },
  ...[expressLimit, koaLimit, honoLimit, nodeLimit, limitFor].map((make) => ({
    make,
    words: [
      ...["name", "limit", "window", "policy", "rules", "key", "keys", "onMissingKey", "cost", "store", "skip", "mode", "headers"],
      ...["plans", "plan", "costs", "settle", "exempt", "ban", "lease", "hold"],
      ...["onLimited", "onStoreError", "timeoutMs", "refundWhen", "clientIp", "ipv6Prefix", "decisionName", "onEvent"],
      ...["keySecret", "receiptSecret", "body"],
    ],
    needs: { limit: 1, window: "1s", store: redisStore(client) },
  })),
];

const call = fc.constantFrom(...makers).chain(({ make, words, needs }) =>
  fc.record({
    make: fc.constant(make),
    options: fc.oneof(
      {
        weight: 9,
        arbitrary: fc.dictionary(fc.constantFrom(...words), nested, { maxKeys: 4 }).map((options) => ({ ...needs, ...options })),
      },
      { weight: 1, arbitrary: anything },
    ),
  }),
);

it("options of any kind are taken, or refused with a code", { timeout: 240_000 }, () => {
  const property = fc.property(call, ({ make, options }) => {
    try {
      make(options as never);
    } catch (error) {
      if (!(error instanceof FloodgateError)) throw error;
    }
  });
  fc.assert(property, runs(100_000));
});
