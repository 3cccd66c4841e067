import { rateLimit } from "@floodgate/express";
import { fileRules, redisRules } from "@floodgate/rules";
import { memoryStore } from "@floodgate/store-memory";
import { redisStore } from "@floodgate/store-redis";
import express from "express";
import { Redis } from "ioredis";

// An app with live rules: `node worker.mjs <rules> <store> <prefix>`. <rules> is a path or a Redis URL, <store> a Redis URL or "memory".
// It answers messages of its parent, and its clock stands still until one sets the time.
const [rulesAt, countsAt, prefix] = process.argv.slice(2);
let nowMs = Date.UTC(2026, 0, 1, 12, 0, 15);
const clock = () => nowMs;

const rules = rulesAt.startsWith("redis:")
  ? await redisRules(new Redis(rulesAt), `${prefix}:rules`)
  : await fileRules(rulesAt, { pollMs: 5 });
const store = countsAt === "memory" ? memoryStore({ clock }) : redisStore(new Redis(countsAt), { prefix, clock });

const later = () => new Promise((resolve) => setImmediate(resolve));
const limit = rateLimit({
  rules,
  keys: {
    user: (req) => req.get("x-user"),
    // Asynchronous, like a database lookup, so that requests interleave.
    session: async (req) => {
      await later();
      return req.get("x-user");
    },
  },
  plan: (req) => req.get("x-plan"),
  clientIp: { trustedHops: 1 },
  store,
  timeoutMs: 30_000,
  onEvent(event) {
    if (event.type === "rules-reloaded") process.send({ event: "reloaded", version: event.version });
    if (event.type === "rules-refused") process.send({ event: "refused", message: event.error.message });
    if (event.type === "store-error") process.send({ event: "store-error", message: event.error.message });
  },
});

const app = express();
app.use(limit);
app.use((_req, res) => {
  res.json({ pid: process.pid });
});
app.use((error, _req, res, _next) => {
  res.status(500).json({ message: error.message });
});

const answers = {
  time(message) {
    nowMs = message.nowMs;
  },
  peek: ({ rule, key }) => limit.limiters.get(rule).peek(key),
  consume: ({ rule, key, cost }) => limit.limiters.get(rule).consume(key, { cost }),
};

process.on("message", async (message) => {
  process.send({ answer: message.id, value: await answers[message.ask](message) });
});
process.once("disconnect", () => process.exit());
const server = app.listen(0, "127.0.0.1", () => process.send({ event: "listening", port: server.address().port }));
// If the server closed an idle connection while a request is in flight, that request would be lost.
server.keepAliveTimeout = 0;
