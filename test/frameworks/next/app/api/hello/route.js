import { decisionOf, rateLimit } from "@floodgate/fetch";
import { redisStore } from "@floodgate/store-redis";
import { Redis } from "ioredis";

// The build loads this module too, without a Redis.
const redis = new Redis({ port: Number(process.env.REDIS_PORT), lazyConnect: true });
const limit = rateLimit({
  ...{ name: "route", limit: 2, window: "365d", clientIp: { trustedHops: 1 } },
  ...{ store: redisStore(redis), timeoutMs: 10_000, onStoreError: "deny" },
});

export const GET = limit((request) => Response.json({ remaining: decisionOf(request)?.remaining }));
