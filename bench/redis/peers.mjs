import { createHash } from "node:crypto";
import { Ratelimit } from "@upstash/ratelimit";
import { RedisStore } from "rate-limit-redis";
import { RateLimiterRedis } from "rate-limiter-flexible";

/** Other libraries, set up as in their documentation, with windows of an hour. */

/** The store of express-rate-limit, asked as that asks it. It counts; to compare is its caller's part. */
export async function rateLimitRedis(redis, limit) {
  const store = new RedisStore({ sendCommand: (...command) => redis.call(...command) });
  await store.init({ windowMs: 3_600_000 });
  return { decide: (key) => store.increment(key), allowed: ({ totalHits }) => totalHits <= limit };
}

/** Keys that have used up all their points it blocks in process. It tells a rejection by one of its promise. */
export function rateLimiterFlexible(redis, points) {
  const limiter = new RateLimiterRedis({ storeClient: redis, points, duration: 3600, inMemoryBlockOnConsumed: points });
  return { decide: (key) => limiter.consume(key), allowed: ({ consumedPoints }) => consumedPoints > 0 && consumedPoints <= points };
}

/** Its sliding window with two counters, and its cache of blocked keys, which is on by default. */
export function upstash(redis, tokens) {
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
