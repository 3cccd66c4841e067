// A process of lease-processes.long.test.ts with leases. Its first argument is what to do, the second is the port of Redis.
import { createLimiter, fixedWindow } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { Redis } from "ioredis";

const [, , task, port] = process.argv;
const lifeMs = task === "exit" ? 10_000 : 10;
const redis = new Redis(Number(port));
redis.on("error", () => undefined);
const store = redisStore(redis, { lease: { lifeMs }, prefix: task, ...(task === "exit" && { clock: () => 1_700_000_000_000 }) });
const policy = fixedWindow({ limit: 1_000_000_000, window: "365d" });
const limiter = createLimiter({ name: "api", policy, store, timeoutMs: 60_000, onStoreError: "deny" });

/** Asks until units are leased. */
async function lease() {
  for (;;) {
    const answer = store.consume(limiter.limit, "hot", 1, 60_000);
    if (!(answer instanceof Promise)) return;
    await answer;
  }
}

if (task === "exit") {
  await lease();
  redis.disconnect();
} else {
  // Once it spends leased units, reports how old the oldest of them was, until the parent process disconnects.
  let oldestMs = 0;
  let spent = 0;
  process.on("message", () => process.send(oldestMs));
  process.on("disconnect", () => process.exit());
  for (let started = false; ; ) {
    if (!started && spent > 0) {
      started = true;
      process.send("started");
    }
    for (let i = 0; i < 50; i++) {
      // The clock of Redis too, because it is on this machine.
      const nowMs = Date.now();
      const answer = store.consume(limiter.limit, "hot", 1, 60_000);
      if (answer instanceof Promise) await answer;
      else {
        spent++;
        oldestMs = Math.max(oldestMs, nowMs - answer.atMs);
      }
    }
    await new Promise(setImmediate);
  }
}
