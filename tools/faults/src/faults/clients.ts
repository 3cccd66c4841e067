import type { AnyRedis } from "@floodgate/store-redis";
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, createSentinel } from "redis";

/** A client of a library's, with the settings that the library itself has. */
export interface Client {
  readonly library: "ioredis" | "redis";
  readonly redis: AnyRedis;
  /** How many commands wait in the library for an answer; undefined where it does not tell. */
  readonly queued: number | undefined;
  /** Asks Redis for a key by the library alone. */
  get(key: string): Promise<unknown>;
  close(): unknown;
}

const host = "127.0.0.1";

/** The same server by both libraries. Nobody waits for them to connect: an app does not either. */
export function connect(port: number): Client[] {
  const redis = createClient({ url: urlOf(port) });
  const clients = [fromIoredis(new Redis(port, host)), fromNodeRedis(redis)];
  redis.connect().catch(ignore);
  return clients;
}

/** The same Cluster by both libraries, connected. */
export async function connectCluster(ports: readonly number[]): Promise<Client[]> {
  const redis = createCluster({ rootNodes: ports.map((port) => ({ url: urlOf(port) })) });
  const clients = [fromIoredis(new Cluster(ports.map((port) => ({ host, port })))), fromNodeRedis(redis)];
  await redis.connect();
  return clients;
}

/** The same master by both libraries, found through a sentinel, connected. */
export async function connectBySentinel(name: string, port: number): Promise<Client[]> {
  const sentinel = { host, port };
  const redis = createSentinel({ name, sentinelRootNodes: [sentinel] });
  const clients = [fromIoredis(new Redis({ sentinels: [sentinel], name })), fromNodeRedis(redis)];
  await redis.connect();
  return clients;
}

function urlOf(port: number): string {
  return `redis://${host}:${port}`;
}

function fromIoredis(redis: Redis | Cluster): Client {
  redis.on("error", ignore);
  return {
    library: "ioredis",
    redis,
    get queued() {
      return redis instanceof Redis ? redis.commandQueue.length : undefined;
    },
    get: (key) => redis.get(key),
    close: () => redis.disconnect(),
  };
}

/** What is used of what `createClient`, `createCluster` and `createSentinel` make. */
type NodeRedis = AnyRedis & {
  on(event: "error", listener: () => void): unknown;
  get(key: string): Promise<unknown>;
  destroy(): unknown;
};

function fromNodeRedis(redis: NodeRedis): Client {
  redis.on("error", ignore);
  return { library: "redis", redis, queued: undefined, get: (key) => redis.get(key), close: () => redis.destroy() };
}

/** Of a server that fails on purpose nobody needs to be told. */
function ignore(): void {}
