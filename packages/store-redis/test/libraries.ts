import { Redis as UpstashRedis } from "@upstash/redis";
import { GlideClient, GlideClusterClient, Logger } from "@valkey/valkey-glide";
import Redis6, { Cluster as Cluster6 } from "ioredis";
import Redis5, { Cluster as Cluster5 } from "ioredis5";
import Iovalkey, { Cluster as IovalkeyCluster } from "iovalkey";
import { createClient as createClient6, createCluster as createCluster6 } from "redis";
import { createClient as createClient5, createCluster as createCluster5 } from "redis5";
import type { AnyRedis } from "../src/index.js";
import { startRestServer } from "./rest-server.js";

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

const glide: Library = {
  async connect(port) {
    // It writes a line for each script that a server does not have yet.
    Logger.setLoggerConfig("off");
    const client = await GlideClient.createClient({ addresses: [{ host, port }], requestTimeout: 60_000 });
    return { client, close: async () => client.close() };
  },
  async connectCluster(ports) {
    Logger.setLoggerConfig("off");
    const client = await GlideClusterClient.createClient({ addresses: ports.map((port) => ({ host, port })), requestTimeout: 60_000 });
    return { client, close: async () => client.close() };
  },
};

const upstash: Library = {
  async connect(port) {
    const server = await startRestServer(port, "a token");
    return { client: new UpstashRedis({ url: server.url, token: "a token" }), close: () => server.stop() };
  },
  connectCluster: () => Promise.reject(new Error("A REST API is one server.")),
};

export type LibraryName = "ioredis 6" | "ioredis 5" | "redis 6" | "redis 5";

export const libraries: Readonly<Record<LibraryName, Library>> = {
  "ioredis 6": ioredis(Redis6, Cluster6),
  "ioredis 5": ioredis(Redis5 as unknown as typeof Redis6, Cluster5 as unknown as typeof Cluster6),
  "redis 6": nodeRedis(createClient6, createCluster6),
  "redis 5": nodeRedis(createClient5 as unknown as typeof createClient6, createCluster5 as unknown as typeof createCluster6),
};

/** More of them, which only the store takes. */
export const storeLibraries = {
  ...libraries,
  iovalkey: ioredis(Iovalkey as unknown as typeof Redis6, IovalkeyCluster as unknown as typeof Cluster6),
  "Valkey GLIDE": glide,
  "@upstash/redis": upstash,
} satisfies Readonly<Record<string, Library>>;

export type StoreLibraryName = keyof typeof storeLibraries;
