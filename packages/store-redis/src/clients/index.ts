import { invalidOption } from "@floodgate/core/store";
import type { RedisClient } from "./client.js";
import { type Glide, GlideClientOf } from "./glide.js";
import { type Ioredis, IoredisClient, type IoredisCluster, IoredisClusterClient } from "./ioredis.js";
import { type NodeRedis, NodeRedisClient, type NodeRedisCluster, type NodeRedisSentinel } from "./node-redis.js";
import { type Upstash, UpstashClient, upstashConnection } from "./upstash.js";

/**
 * The user's client: `Redis` or `Cluster` of ioredis 5 or 6 or of iovalkey, the result of `createClient`, `createCluster` or `createSentinel`
 * of redis (node-redis) 5 or 6, `Redis` of @upstash/redis, or `GlideClient` or `GlideClusterClient` of Valkey GLIDE 2.
 */
export type AnyRedis = Ioredis | IoredisCluster | NodeRedis | NodeRedisCluster | NodeRedisSentinel | Upstash | Glide;

/**
 * Wraps the user's client. Detects its library by members that only that library has: constructor names change with bundlers and
 * versions.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` if it is not a supported client.
 */
export function clientOf(where: string, client: AnyRedis): RedisClient {
  if (has<IoredisCluster>(client, "evalsha", "pipeline") && client.isCluster === true) return new IoredisClusterClient(client);
  if (has<Ioredis>(client, "evalsha", "connect") && typeof client.status === "string") return new IoredisClient(client);
  if (has<NodeRedisCluster>(client, "sendCommand", "nodeClient")) return new NodeRedisClient(client);
  if (has<NodeRedis | NodeRedisSentinel>(client, "sendCommand") && typeof client.isReady === "boolean") return new NodeRedisClient(client);
  if (has<Glide>(client, "invokeScript")) return new GlideClientOf(client, has(client, "pubsubShardChannels"));
  const connection = upstashConnection(client);
  if (connection !== undefined) return new UpstashClient(connection);
  throw invalidOption(
    `${where} takes a client of ioredis (new Redis(), new Cluster([...])), redis (createClient(), createCluster(), createSentinel()), iovalkey, Valkey GLIDE or @upstash/redis, but was given ${described(client)}. Write redisStore(new Redis("redis://127.0.0.1:6379")).`,
  );
}

function has<Client>(client: unknown, ...methods: string[]): client is Client {
  return (
    typeof client === "object" &&
    client !== null &&
    methods.every((name) => typeof (client as Record<string, unknown>)[name] === "function")
  );
}

function described(client: unknown): string {
  if (client instanceof Promise) return "a promise of one: await it first";
  if (client === null || client === undefined) return String(client);
  if (has(client, "execute", "sendCommand")) return "a pool: one connection is enough";
  // Do not show the value: a URL may contain a password.
  return typeof client === "object" ? "an object of another kind" : `a ${typeof client}`;
}
