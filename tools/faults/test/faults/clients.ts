import type { AnyRedis } from "@floodgate/store-redis";
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster, createSentinel } from "redis";

/** A library's client with the library's default settings. */
export interface Client {
  readonly library: "ioredis" | "redis";
  readonly redis: AnyRedis;
  /** The number of commands that wait for a reply in the library; undefined if it cannot tell. */
  readonly queued: number | undefined;
  /** Reads a key by the library alone. */
  get(key: string): Promise<unknown>;
  close(): unknown;
}

const host = "127.0.0.1";

/** Clients of both libraries for one server. Does not wait for them to connect, as apps do not either. */
export function connect(port: number): Client[] {
  const redis = createClient({ url: urlOf(port) });
  const clients = [fromIoredis(new Redis(port, host)), fromNodeRedis(redis)];
  redis.connect().catch(ignore);
  return clients;
}

/** Connected clients of both libraries for one Cluster. */
export async function connectCluster(ports: readonly number[]): Promise<Client[]> {
  const redis = createCluster({ rootNodes: ports.map((port) => ({ url: urlOf(port) })) });
  const clients = [fromIoredis(new Cluster(ports.map((port) => ({ host, port })))), fromNodeRedis(redis)];
  await redis.connect();
  return clients;
}

/** Connected clients of both libraries for one master behind a sentinel. */
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

/** The used part of node-redis clients, Clusters and Sentinels. */
type NodeRedis = AnyRedis & {
  on(event: "error", listener: () => void): unknown;
  get(key: string): Promise<unknown>;
  destroy(): unknown;
};

function fromNodeRedis(redis: NodeRedis): Client {
  redis.on("error", ignore);
  return { library: "redis", redis, queued: undefined, get: (key) => redis.get(key), close: () => redis.destroy() };
}

/** Errors are expected: the server fails on purpose. */
function ignore(): void {}
