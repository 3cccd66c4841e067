// An app with a dashboard, as a process of its own: node app.mjs <redis port> <client library>
import { once } from "node:events";
import { dashboard } from "@floodgate/dashboard/express";
import { rateLimit } from "@floodgate/express";
import express from "express";
import { Redis } from "ioredis";
import { createClient } from "redis";

const [port, library] = process.argv.slice(2);
let redis;
if (library === "ioredis") redis = new Redis(Number(port), "127.0.0.1", { lazyConnect: true });
else {
  redis = createClient({ url: `redis://127.0.0.1:${port}` });
  await redis.on("error", () => undefined).connect();
}
if (library === "ioredis") redis.on("error", () => undefined);

const app = express();
const own = dashboard({ redis, prefix: "test" });
app.use("/f", own);
app.use(rateLimit({ name: "web", limit: 3, window: "1d", key: (req) => req.get("x-user") }));
app.get("/", (_req, res) => res.send("hello"));
const server = app.listen(0, "127.0.0.1");
await once(server, "listening");
process.on("message", () => own.close());
process.send(server.address().port);
