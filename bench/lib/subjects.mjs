import { concurrency, consumeAll, createLimiter, slidingWindowCounter, tokenBucket } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { MemoryStore } from "express-rate-limit";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { policiesOf } from "./policies.mjs";

const window = "1h";
const windowMs = 3_600_000;

/** The minimum of a decision: a Map, a clock, a count. All others are shown as a ratio to it. */
const bareMap =
  (answer) =>
  ({ limit }) => {
    const counts = new Map();
    return (key) => {
      const nowMs = Date.now();
      let entry = counts.get(key);
      if (entry === undefined || nowMs >= entry.reset) {
        entry = { count: 0, reset: nowMs + windowMs };
        counts.set(key, entry);
      }
      const allowed = entry.count < limit;
      if (allowed) entry.count++;
      return answer(allowed, limit, entry, nowMs);
    };
  };

/** What a function cannot do without that says more than yes or no. */
const asObject = (allowed, limit, { count, reset }, nowMs) => ({
  allowed,
  limit,
  remaining: limit - count,
  retryAfterMs: allowed ? 0 : reset - nowMs,
  resetAfterMs: reset - nowMs,
});

const ours =
  (name) =>
  ({ limit, maxKeys = 100_000 }) => {
    const store = memoryStore({ maxKeys });
    const limiter = createLimiter({ name: "api", policy: policiesOf({ limit, window })[name], store });
    const decide = (key) => limiter.consume(key);
    return Object.assign(decide, { size: () => store.size });
  };

/** A request under three limits: one for all clients, and two for its own. */
function threeLimits({ limit, maxKeys = 300_000 }) {
  const store = memoryStore({ maxKeys });
  const [all, minute, hour] = ["1s", "1m", "1h"].map((period) =>
    createLimiter({ name: period, policy: slidingWindowCounter({ limit, window: period }), store }),
  );
  return (key) =>
    consumeAll([
      { limiter: all, key: "global" },
      { limiter: minute, key },
      { limiter: hour, key },
    ]);
}

function expressRateLimit({ limit }) {
  const store = new MemoryStore();
  store.init({ windowMs });
  return async (key) => (await store.increment(key)).totalHits <= limit;
}

function rateLimiterFlexible({ limit }) {
  const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 });
  return async (key) => {
    try {
      await limiter.consume(key);
      return true;
    } catch {
      return false;
    }
  };
}

/** A decision, and what follows at the end of its request. Of a low limit, which is to be used up, nothing is given back. */
function givenBack(policy, limit) {
  const limiter = createLimiter({ name: "bench", policy, store: memoryStore() });
  return (key) => {
    const decision = limiter.consume(key);
    if (limit > 10_000) limiter.refund(key, decision);
    return decision;
  };
}

/** By name, a factory of a function that decides one request of a key (true or a decision); `async` if it returns a promise. */
export const subjects = {
  "bare Map": { make: bareMap((allowed) => allowed) },
  "bare Map, an object for each answer": { make: bareMap(asObject) },
  "clock alone": { make: () => () => Date.now() > 0 },
  ...Object.fromEntries(Object.keys(policiesOf({ limit: 1, window })).map((name) => [name, { make: ours(name) }])),
  "three limits": { make: threeLimits },
  "tokenBucket, refunded": { make: ({ limit }) => givenBack(tokenBucket({ capacity: limit, refill: limit, every: window }), limit) },
  "concurrency, taken and given back": {
    make: ({ limit }) => givenBack(concurrency({ limit: Math.min(limit, 10_000), hold: window }), limit),
  },
  "express-rate-limit": { make: expressRateLimit, async: true },
  "rate-limiter-flexible": { make: rateLimiterFlexible, async: true },
};

export const floor = "bare Map";

/** The key of client `i`: an address as a flat string, like those from sockets. */
export function clientKey(i) {
  return Buffer.from(`10.${(i >>> 16) & 255}.${(i >>> 8) & 255}.${i & 255}`, "latin1").toString("latin1");
}
