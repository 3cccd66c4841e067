import Redis6, { Cluster as Cluster6 } from "ioredis";
import Redis5, { Cluster as Cluster5 } from "ioredis5";
import { createClient as createClient6, createCluster as createCluster6 } from "redis";
import { createClient as createClient5, createCluster as createCluster5 } from "redis5";
import type { AnyRedis } from "../src/index.js";

/** A connected client, and a function that closes it. */
export interface Connected<Client extends AnyRedis = AnyRedis> {
  readonly client: Client;
  close(): Promise<unknown>;
}

/** A client library: how to connect to one server, and to a Cluster. */
export interface Library {
  connect(port: number): Promise<Connected>;
  connectCluster(ports: readonly number[]): Promise<Connected>;
}

const host = "127.0.0.1";

function ioredis(Redis: typeof Redis6, Cluster: typeof Cluster6): Library {
  return {
    async connect(port) {
      const client = new Redis(port, host);
      client.on("error", () => undefined);
      return { client, close: () => client.quit() };
    },
    async connectCluster(ports) {
      const client = new Cluster(ports.map((port) => ({ host, port })));
      client.on("error", () => undefined);
      return { client, close: () => client.quit() };
    },
  };
}

function nodeRedis(createClient: typeof createClient6, createCluster: typeof createCluster6): Library {
  const url = (port: number): string => `redis://${host}:${port}`;
  return {
    async connect(port) {
      const client = createClient({ url: url(port) });
      client.on("error", () => undefined);
      await client.connect();
      return { client, close: () => client.close() };
    },
    async connectCluster(ports) {
      const client = createCluster({ rootNodes: ports.map((port) => ({ url: url(port) })) });
      client.on("error", () => undefined);
      await client.connect();
      return { client, close: () => client.close() };
    },
  };
}

export type LibraryName = "ioredis 6" | "ioredis 5" | "redis 6" | "redis 5";

export const libraries: Readonly<Record<LibraryName, Library>> = {
  "ioredis 6": ioredis(Redis6, Cluster6),
  "ioredis 5": ioredis(Redis5 as unknown as typeof Redis6, Cluster5 as unknown as typeof Cluster6),
  "redis 6": nodeRedis(createClient6, createCluster6),
  "redis 5": nodeRedis(createClient5 as unknown as typeof createClient6, createCluster5 as unknown as typeof createCluster6),
};
