import { rateLimit, slidingWindowLog } from "@floodgate/express";
import { redisStore } from "@floodgate/store-redis";
import express from "express";
import { Redis } from "ioredis";

// One process of the app: `node worker.mjs <Redis URL> <prefix>`. All processes share their counts in Redis.
const [url, prefix] = process.argv.slice(2);

const redis = new Redis(url, { lazyConnect: true });
redis.on("error", (error) => console.error(`Redis: ${error.message}`));

const app = express();
app.use(
  rateLimit({
    name: "per-ip",
    policy: slidingWindowLog({ limit: 10, window: "1m" }),
    store: redisStore(redis, { prefix }),
    timeoutMs: 1000,
  }),
);
app.get("/", (req, res) => {
  res.json({ process: process.pid, remaining: req.rateLimit.remaining });
});

// Apps need not wait for Redis, but in this demo every request must be counted.
await redis.connect().catch(() => {
  console.error("There must be a Redis: start one with redis-server, or say where one is with REDIS_URL.");
  process.exit(1);
});
const server = app.listen(0, "127.0.0.1", () => {
  process.send?.({ port: server.address().port });
});
// End when the parent process ends.
process.once("disconnect", () => process.exit());
