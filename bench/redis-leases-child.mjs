// Makes requests of one key with several stores, each with a connection of its own, and answers what each window admitted.
import { setTimeout as sleep } from "node:timers/promises";
import { createLimiter, fixedWindow } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { Redis } from "ioredis";
import { serve } from "./lib/child.mjs";

const [port, stores, limit, seconds] = process.argv.slice(2).map(Number);
const policy = fixedWindow({ limit, window: "1s" });
const admitted = new Map();
let requests = 0;

async function drive(client) {
  const store = redisStore(client, { lease: true });
  const limiter = createLimiter({ name: "shared", policy, store, timeoutMs: 2000, onStoreError: "deny" });
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const made = await Promise.all(Array.from({ length: 100 }, () => limiter.consume("hot")));
    requests += made.length;
    for (const { allowed, atMs } of made) {
      const window = Math.floor(atMs / 1000);
      if (allowed) admitted.set(window, (admitted.get(window) ?? 0) + 1);
    }
    await sleep(10);
  }
  await store.releaseLeases();
}

serve(async () => {
  await Promise.all(Array.from({ length: stores }, () => drive(new Redis(port))));
  return { admitted: [...admitted], requests };
});
