import { startRedis } from "@floodgate/test-servers";
import { getRequestListener } from "@hono/node-server";
import type { Hono } from "hono";
import { expect, it } from "vitest";
import { exchange, times } from "./exchange.js";
import { migrated, pageTest, withLongWindows } from "./harness.js";
import { load, Page } from "./page.js";
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

const page = new Page("upstash-ratelimit");
pageTest(
  page,
  "@upstash/ratelimit",
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

it("what the command writes decides the same, with a client for TCP", async () => {
  const { code, byHand } = await migrated("@upstash/ratelimit", page.code("A limiter", "before").text);
  expect(byHand.map(({ message }) => message.slice(0, 36))).toEqual(["`redisStore` needs a client for TCP:"]);
  const byPerson = code.replace("@upstash/redis", "ioredis").replace(/new Redis\(\{.*?\}\)/, "new Redis(process.env.REDIS_URL)");
  const redis = await startRedis();
  process.env["REDIS_URL"] = `redis://127.0.0.1:${redis.port}`;
  const module = await load<{ app: Hono; redis: { disconnect(): void } }>(`${withLongWindows(byPerson)}export { redis };`);
  try {
    const replies = await exchange(getRequestListener(module.app.fetch), [...times(3, chat), { method: "POST", path: "/reset" }, chat]);
    expect(replies.map(({ status, body }) => `${status} ${body}`)).toEqual([
      '200 {"left":6}',
      '200 {"left":2}',
      '429 {"left":2}',
      "200 ",
      '200 {"left":6}',
    ]);
  } finally {
    module.redis.disconnect();
    await redis.stop();
  }
});
