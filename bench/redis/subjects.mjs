import { createHash } from "node:crypto";
import { consumeAll, createLimiter, slidingWindowCounter, slidingWindowLog } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { Ratelimit } from "@upstash/ratelimit";
import { RedisStore } from "rate-limit-redis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { policiesOf } from "../lib/policies.mjs";

const window = "1h";
const neverReached = 1e9;

/** The minimum of a decision in Redis. All others are shown as ratios to it. */
export const floors = ["INCR", "minimal EVALSHA"];

function incr(redis) {
  return { decide: (key) => redis.incr(`incr:${key}`), allowed: (count) => count > 0 };
}

/** What two limits cost at least, if they travel together. */
function twoIncrs(redis) {
  const decide = (key) => redis.pipeline().incr(`incr:${key}`).incr(`incr2:${key}`).exec();
  return { decide, allowed: ([[error, first]]) => error === null && first > 0 };
}

/** A minimal fixed window: it neither rejects nor reports when it ends. */
async function minimalEvalsha(redis) {
  const script = "local n = redis.call('INCR', KEYS[1]) if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end return n";
  const sha = await redis.script("LOAD", script);
  return { decide: (key) => redis.evalsha(sha, 1, `minimal:${key}`, "3600000"), allowed: (count) => count > 0 };
}

/** Long, so that a busy machine does not cause timeouts. */
const timeoutMs = 5000;

const ours =
  (policy, options = {}) =>
  (redis) => {
    const limiter = createLimiter({ name: "api", policy, store: redisStore(redis, options), timeoutMs });
    return { decide: (key) => limiter.consume(key), allowed };
  };

function twoLimits(redis) {
  const store = redisStore(redis);
  const limiterOf = (name, policy) => createLimiter({ name, policy, store, timeoutMs });
  const perMinute = limiterOf("minute", slidingWindowCounter({ limit: neverReached, window: "1m" }));
  const perHour = limiterOf("hour", slidingWindowCounter({ limit: neverReached, window }));
  return {
    decide: (key) =>
      consumeAll([
        { limiter: perMinute, key },
        { limiter: perHour, key },
      ]),
    allowed: ({ decision }) => allowed(decision),
  };
}

function allowed(decision) {
  if (decision.degraded) throw new Error("Redis did not decide");
  return decision.allowed;
}

// Other libraries are set up as in their documentation, with windows of an hour.

/** The store of express-rate-limit, asked as that asks it. It counts; to compare is its caller's part. */
async function rateLimitRedis(redis, limit) {
  const store = new RedisStore({ sendCommand: (...command) => redis.call(...command) });
  await store.init({ windowMs: 3_600_000 });
  return { decide: (key) => store.increment(key), allowed: ({ totalHits }) => totalHits <= limit };
}

/** Keys that have used up all their points it blocks in process. It tells a rejection by one of its promise. */
function rateLimiterFlexible(redis, points) {
  const limiter = new RateLimiterRedis({ storeClient: redis, points, duration: 3600, inMemoryBlockOnConsumed: points });
  return { decide: (key) => limiter.consume(key), allowed: ({ consumedPoints }) => consumedPoints > 0 && consumedPoints <= points };
}

/** Its sliding window with two counters, and its cache of blocked keys, which is on by default. */
function upstash(redis, tokens) {
  const ratelimit = new Ratelimit({ redis: overIoredis(redis), limiter: Ratelimit.slidingWindow(tokens, "1 h") });
  return { decide: (key) => ratelimit.limit(key), allowed: ({ success }) => success };
}

/**
 * What it asks of a client, over ioredis in place of HTTP. Its scripts begin with a line that sets a flag of Upstash's own, which
 * Redis refuses: they are sent without that line, and so are known to Redis by other hashes.
 */
function overIoredis(redis) {
  const shas = new Map();
  return {
    evalsha: (sha, keys, args) => {
      const known = shas.get(sha);
      return known === undefined ? Promise.reject(new Error("NOSCRIPT")) : redis.evalsha(known, keys.length, ...keys, ...args);
    },
    eval: async (script, keys, args) => {
      const known = await redis.script("LOAD", script.replace(/^#!.*\n/, ""));
      shas.set(createHash("sha1").update(script).digest("hex"), known);
      return redis.evalsha(known, keys.length, ...keys, ...args);
    },
  };
}

const limit = neverReached;
/** Buckets and queues that refill so slowly that they never become full again. */
const policies = {
  ...policiesOf({ limit, window, capacity: 1e6, refill: 100_000, every: "1d" }),
  // A log of all that an hour of this brings would be no log of a rate limit.
  slidingWindowLog: slidingWindowLog({ limit, window: "1s" }),
};
const denied = slidingWindowCounter({ limit: 1, window });

/** By name; `denied` where each key but for its first request is rejected; `keys` unless there are 1,000; `command` where the client sends another than EVALSHA. */
export const subjects = {
  INCR: { make: incr, command: "incr" },
  "minimal EVALSHA": { make: minimalEvalsha },
  ...Object.fromEntries(Object.entries(policies).map(([name, policy]) => [name, { make: ours(policy) }])),
  "two slidingWindowCounters in one step": { make: twoLimits },
  "two INCRs in a pipeline": { make: twoIncrs, command: "incr" },
  "rate-limit-redis": { make: (redis) => rateLimitRedis(redis, limit) },
  "rate-limiter-flexible": { make: (redis) => rateLimiterFlexible(redis, limit) },
  "@upstash/ratelimit": { make: (redis) => upstash(redis, limit) },
  "denied, slidingWindowCounter": { make: ours(denied), denied: true },
  "denied, 100 keys": { make: ours(denied), denied: true, keys: 100 },
  "denied, 20,000 keys": { make: ours(denied), denied: true, keys: 20_000 },
  "denied, 100,000 keys": { make: ours(denied), denied: true, keys: 100_000 },
  "denied, 100,000 keys, maxAgeMs 10 s": {
    make: ours(denied, { denyCache: { maxAgeMs: 10_000 } }),
    denied: true,
    keys: 100_000,
  },
  "denied, denyCache: false": { make: ours(denied, { denyCache: false }), denied: true },
  "denied, rate-limiter-flexible": { make: (redis) => rateLimiterFlexible(redis, 1), denied: true },
  "denied, @upstash/ratelimit": { make: (redis) => upstash(redis, 1), denied: true },
};
