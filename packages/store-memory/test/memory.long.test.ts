import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createLimiter, slidingWindowCounter } from "@floodgate/core";
import { expect, test } from "vitest";
import { memoryStore } from "../src/index.js";

setFlagsFromString("--expose_gc");
const gc = runInNewContext("gc") as () => void;

async function heapGrowth(work: () => void): Promise<number> {
  gc();
  const before = process.memoryUsage().heapUsed;
  work();
  // What a WeakRef was made for lives until here.
  await new Promise(setImmediate);
  gc();
  return process.memoryUsage().heapUsed - before;
}

test.each([
  ["below", 5],
  ["at", 1],
])("a key %s its limit that is part of a long header keeps none of the rest in memory", async (_, limit) => {
  const limiter = createLimiter({ name: "api", policy: slidingWindowCounter({ limit, window: "1m" }), store: memoryStore() });
  limiter.consume("warm");
  const grown = await heapGrowth(() => {
    for (let i = 0; i < 200; i++) {
      const header = `${"x".repeat(500_000)}, 2001:db8:${i}::1`.normalize();
      limiter.consume(header.slice(500_002));
    }
  });
  expect(grown).toBeLessThan(20_000_000);
});

test("keys of any length take little memory", async () => {
  const limiter = createLimiter({ name: "api", policy: slidingWindowCounter({ limit: 5, window: "1m" }), store: memoryStore() });
  limiter.consume("warm");
  const grown = await heapGrowth(() => {
    for (let i = 0; i < 200; i++) limiter.consume(`${i}${"x".repeat(100_000)}`);
  });
  expect(grown).toBeLessThan(5_000_000);
});

test.each([100, 8_000_000])("names of closed limiters take no memory of a store with maxKeys %s", async (maxKeys) => {
  const store = memoryStore({ maxKeys });
  const use = (name: string): void => {
    const limiter = createLimiter({ name, policy: slidingWindowCounter({ limit: 1, window: "1m" }), store });
    for (let i = 0; i < 2; i++) limiter.consume("key");
    limiter.block("key", "1h");
    limiter.unblock("key");
    limiter.reset("key");
    limiter.close();
  };
  for (let i = 0; i < 1000; i++) use(`warm ${i}`);
  const grown = await heapGrowth(() => {
    for (let i = 0; i < 10_000; i++) use(`name ${i}`);
  });
  expect(grown).toBeLessThan(1_000_000);
});

test("a state of megabytes is not stored twice", () => {
  const before = process.memoryUsage().arrayBuffers;
  const policy = slidingWindowCounter({ limit: 5, window: 500_000, buckets: 500_000 });
  const limiter = createLimiter({ name: "api", policy, store: memoryStore() });
  expect(limiter.consume("one").remaining).toBe(4);
  expect(limiter.consume("other").remaining).toBe(4);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000);
});
