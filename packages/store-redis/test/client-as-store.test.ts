import { createLimiter, fixedWindow } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { createClient, createCluster, createSentinel } from "redis";
import { createClient as createClient5 } from "redis5";
import { expect, test } from "vitest";

const lazyConnect = true;
const sentinels = { name: "master", sentinelRootNodes: [{ host: "127.0.0.1", port: 1 }] };

const clients: [string, object, wrapped: string][] = [
  ["ioredis 6", new Redis({ lazyConnect }), "new Redis(...)"],
  ["ioredis 5", new Redis5({ lazyConnect }), "new Redis(...)"],
  ["Cluster of ioredis 6", new Cluster([], { lazyConnect }), "new Redis(...)"],
  ["Cluster of ioredis 5", new Cluster5([], { lazyConnect }), "new Redis(...)"],
  ["redis 6", createClient(), "client"],
  ["redis 5", createClient5(), "client"],
  ["a Cluster of redis 6", createCluster({ rootNodes: [] }), "client"],
  ["a Sentinel of redis 6", createSentinel(sentinels), "client"],
];

const policy = fixedWindow({ limit: 5, window: "1m" });
const make = (options: object) => createLimiter({ name: "api", policy, ...options } as never);

test.each(clients)("a client of %s given as a store is answered by redisStore", (_, store, wrapped) => {
  expect(() => make({ store })).toThrow(
    `\`store\` must be a store, but was a Redis client. Write store: redisStore(${wrapped}), with import { redisStore } from "@floodgate/store-redis".`,
  );
});

test.each(clients)("a client of %s given as a fallback is answered by memoryStore", (_, onStoreError) => {
  expect(() => make({ store: memoryStore(), onStoreError })).toThrow(
    "onStoreError takes a store in this process, which answers at once. Write onStoreError: memoryStore().",
  );
});
