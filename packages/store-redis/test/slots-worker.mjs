// A process of slots-processes.long.test.ts. Arguments: its name, the port of Redis, the limit, the hold, how many runs (0: until it is killed).
import { concurrency, createLimiter } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { Redis } from "ioredis";

const [, , name, port, limit, hold, runs] = process.argv;
const redis = new Redis(Number(port), { connectionName: `process-${name}` });
redis.on("error", () => undefined);
const store = redisStore(redis, { prefix: "slots" });
const policy = concurrency({ limit: Number(limit), hold });
const limiter = createLimiter({ name: "jobs", policy, store, timeoutMs: 60_000, onStoreError: "deny" });

// Counts the work that runs, by process, and remembers the most that ever ran at once.
const begin = `redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
local sum = 0
for _, n in ipairs(redis.call('HVALS', KEYS[1])) do sum = sum + n end
if sum > tonumber(redis.call('GET', KEYS[2]) or 0) then redis.call('SET', KEYS[2], sum) end`;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let done = 0;
async function work() {
  while (Number(runs) === 0 || done < Number(runs)) {
    done++;
    for (;;) {
      const ran = await limiter.run("key", async () => {
        await redis.eval(begin, 2, "running", "most", name);
        await pause(Math.random() * 20);
        await redis.hincrby("running", name, -1);
      });
      if (ran.allowed) break;
      await pause(Math.random() * 3);
    }
  }
}

await Promise.all(Array.from({ length: 4 }, work));
redis.disconnect();
