import { startRedis } from "@floodgate/test-servers";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { times } from "./exchange.js";
import { pageTest } from "./harness.js";
import { startBridge } from "./rest-bridge.js";

/** A redis-server, and Upstash's REST protocol in front of it. */
async function startUpstash() {
  const redis = await startRedis();
  const bridge = await startBridge(`redis://127.0.0.1:${redis.port}`);
  process.env["UPSTASH_REDIS_REST_URL"] = bridge.url;
  process.env["UPSTASH_REDIS_REST_TOKEN"] = "any";
  return {
    port: redis.port,
    stop: async () => {
      await bridge.stop();
      await redis.stop();
    },
  };
}

const chat = { path: "/chat" };
const common = { isByHand: true, hidesReplies: true, redis: startUpstash } as const;

pageTest(
  "upstash-ratelimit",
  undefined,
  [
    {
      heading: "A middleware",
      requests: [...times(5, { headers: { "x-user": "ann" } }), {}],
      statuses: [200, 200, 200, 429, 429, 200],
      ...common,
    },
    {
      heading: "A limiter",
      requests: [...times(4, chat), { method: "POST", path: "/reset" }, chat],
      statuses: [200, 200, 429, 429, 200, 200],
      ...common,
    },
  ],
  ({ app }: { app: Hono }) => getRequestListener(app.fetch),
);
