// A process of `slots`: runs work under a limit of 2 at once, and counts in Redis how much work runs.
import { setTimeout as pause } from "node:timers/promises";
import { concurrency, createLimiter } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import Bottleneck from "bottleneck";
import { Redis } from "ioredis";
import pLimit from "p-limit";
import { serve } from "./lib/child.mjs";

const [subject, port] = process.argv.slice(2);
const redis = new Redis(Number(port));
const holdMs = 2000;

function ofFloodgate() {
  const policy = concurrency({ limit: 2, hold: "2s" });
  const limiter = createLimiter({ name: "jobs", policy, store: redisStore(redis), timeoutMs: 10_000, onStoreError: "deny" });
  return async (work) => {
    while (!(await limiter.run("key", work)).allowed) await pause(5);
  };
}

function ofBottleneck(options) {
  const limiter = new Bottleneck({ id: "jobs", datastore: "ioredis", Redis, clientOptions: { port: Number(port) }, maxConcurrent: 2 });
  limiter.on("error", () => undefined);
  return (work, id) => limiter.schedule({ ...options, ...(id && { id }) }, work);
}

const runners = {
  Floodgate: ofFloodgate,
  bottleneck: () => ofBottleneck({}),
  "bottleneck, expiration": () => ofBottleneck({ expiration: holdMs }),
  "p-limit": () => pLimit(2),
};
const run = runners[subject]();

const begin = `local n = redis.call('INCR', KEYS[1])
if n > tonumber(redis.call('GET', KEYS[2]) or 0) then redis.call('SET', KEYS[2], n) end`;

serve(async ({ runs, atOnce, ms, id }) => {
  let left = runs;
  let failed = false;
  const working = new Set();
  const work = async () => {
    await redis.eval(begin, 2, "running", "most");
    await pause(ms);
    await redis.decr("running");
  };
  const worker = async () => {
    while (left-- > 0) {
      await run(() => {
        const done = work();
        working.add(done);
        return done;
      }, id).catch(() => {
        failed = true;
      });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  // Work goes on after a limiter has given it up.
  await Promise.all(working);
  return failed;
});
