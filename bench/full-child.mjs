import { createLimiter, slidingWindowCounter } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { serve } from "./lib/child.mjs";

/** Fresh keys on a store that is full of keys of the same limit: CPU time a key, and the longest batch. */
const [limit, maxKeys, keys] = process.argv.slice(2).map(Number);
const batch = 100;

const store = memoryStore({ maxKeys, clock: () => 1_789_948_800_000 });
const limiter = createLimiter({ name: "api", policy: slidingWindowCounter({ limit, window: "1h" }), store });
let made = 0;

function fresh(count) {
  return Array.from({ length: count }, () =>
    Buffer.from(`10.${made >>> 16}.${(made >>> 8) & 255}.${made++ & 255}`, "latin1").toString("latin1"),
  );
}

function cpuNs() {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
}

serve(() => {
  while (store.size < maxKeys) for (const key of fresh(batch)) limiter.consume(key);
  // Warm-up: the Maps have seen deletions, and the code is optimised.
  for (let i = 0; i < 20_000; i += batch) for (const key of fresh(batch)) limiter.consume(key);
  let ns = 0;
  let longestMs = 0;
  for (let i = 0; i < keys; i += batch) {
    const some = fresh(batch);
    const start = performance.now();
    const before = cpuNs();
    for (const key of some) limiter.consume(key);
    ns += cpuNs() - before;
    longestMs = Math.max(longestMs, performance.now() - start);
  }
  if (store.size > maxKeys) throw new Error(`${store.size} keys where there may be ${maxKeys}`);
  return { ns: ns / keys, longestMs };
});
