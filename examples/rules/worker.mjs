import { rateLimit } from "@floodgate/express";
import { redisRules } from "@floodgate/rules";
import { redisStore } from "@floodgate/store-redis";
import express from "express";
import { Redis } from "ioredis";

// One process of the app: `node worker.mjs <Redis URL> <prefix>`. All processes follow the rules under one Redis key, and share their
// counts in Redis.
const [url, prefix] = process.argv.slice(2);

const redis = new Redis(url);
redis.on("error", (error) => console.error(`Redis: ${error.message}`));
const rules = await redisRules(redis, `${prefix}:rules`);

const app = express();
app.use(
  rateLimit({
    rules,
    // The key `user` and the plan of a request: here from headers, in a real app from its session.
    keys: { user: (req) => req.get("x-user") },
    plan: (req) => req.get("x-plan"),
    // The demo acts as a proxy in front of this process, with many clients.
    clientIp: { trustedHops: 1 },
    store: redisStore(redis, { prefix }),
    timeoutMs: 1000,
    onEvent(event) {
      if (event.type === "rules-reloaded") process.send?.({ version: event.version });
      if (event.type === "rules-refused") process.send?.({ refused: event.error.message });
    },
  }),
);
app.all("/*path", (req, res) => {
  res.json({ process: process.pid, remaining: req.rateLimit?.remaining });
});

const server = app.listen(0, "127.0.0.1", () => {
  process.send?.({ port: server.address().port, version: rules.version });
});
// End when the parent process ends.
process.once("disconnect", () => process.exit());
