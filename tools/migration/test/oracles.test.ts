import { createLimiter, fixedWindow, slidingWindowCounter } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { Ratelimit } from "@upstash/ratelimit";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it, vi } from "vitest";

let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
  // Upstash's library reads the time of its scripts from it.
  vi.useFakeTimers({ toFake: ["Date"] });
});

afterAll(async () => {
  vi.useRealTimers();
  redis.disconnect();
  await server.stop();
});

/** Runs the scripts of Upstash's library on a Redis, which does not know the flags in their first line. */
const client = {
  evalsha: () => Promise.reject(new Error("NOSCRIPT")),
  eval: (script: string, keys: string[], args: string[]) => redis.eval(script.replace(/^#!.*\n/, ""), keys.length, ...keys, ...args),
};

it.each([
  ["fixedWindow", fixedWindow],
  ["slidingWindow", slidingWindowCounter],
] as const)("%s of @upstash/ratelimit decides random requests of one unit as Floodgate does", async (algorithm, policyOf) => {
  let runs = 0;
  const setup = fc.record({
    limit: fc.integer({ min: 1, max: 20 }),
    window: fc.constantFrom(1_000, 7_000, 60_000, 997_000),
    // Parts of a window between two requests, in hundredths of its even pace; sometimes more than a window.
    gaps: fc.array(fc.oneof({ weight: 9, arbitrary: fc.nat(150) }, { weight: 1, arbitrary: fc.nat(4_000) }), { maxLength: 80 }),
  });
  await fc.assert(
    fc.asyncProperty(setup, async ({ limit, window, gaps }) => {
      const prefix = `${algorithm}-${runs++}`;
      const limiter = Ratelimit[algorithm](limit, `${window} ms`);
      const upstash = new Ratelimit({ redis: client as never, limiter, prefix, ephemeralCache: false });
      const own = createLimiter({ name: "own", policy: policyOf({ limit, window }), store: memoryStore() });
      for (const gap of gaps) {
        vi.setSystemTime(Date.now() + Math.round((gap * window) / limit / 100));
        const { success, remaining } = await upstash.limit("key");
        expect(own.consume("key")).toMatchObject({ allowed: success, ...(success ? { remaining } : {}) });
      }
    }),
    { numRuns: 100 },
  );
});
