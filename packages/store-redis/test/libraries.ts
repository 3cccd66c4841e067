import type { AnyRedis } from "../src/index.js";
import { startRestServer } from "./rest-server.js";

/** A connected client, and a function that closes it. */
export interface Connected<Client extends AnyRedis = AnyRedis> {
  readonly client: Client;
  close(): Promise<unknown>;
}

interface User {
  readonly username: string;
  readonly password: string;
}

/** A client library: how to connect to one server, and to a Cluster. It is loaded when it first connects, because loading takes long. */
export interface Library {
  connect(port: number): Promise<Connected>;
  connectCluster(ports: readonly number[], user?: User): Promise<Connected>;
}

const host = "127.0.0.1";

type Ioredis = Pick<typeof import("ioredis"), "default" | "Cluster">;
type NodeRedis = Pick<typeof import("redis"), "createClient" | "createCluster">;

function ioredis(load: () => Promise<unknown>): Library {
  return {
    async connect(port) {
      const { default: Redis } = (await load()) as Ioredis;
      const client = new Redis(port, host);
      client.on("error", () => undefined);
      return { client, close: () => client.quit() };
    },
    async connectCluster(ports, user) {
      const { Cluster } = (await load()) as Ioredis;
      const client = new Cluster(
        ports.map((port) => ({ host, port })),
        { redisOptions: { ...user } },
      );
      client.on("error", () => undefined);
      return { client, close: () => client.quit() };
    },
  };
}

function nodeRedis(load: () => Promise<unknown>): Library {
  const url = (port: number): string => `redis://${host}:${port}`;
  return {
    async connect(port) {
      const { createClient } = (await load()) as NodeRedis;
      const client = createClient({ url: url(port) });
      client.on("error", () => undefined);
      await client.connect();
      return { client, close: () => client.close() };
    },
    async connectCluster(ports, user) {
      const { createCluster } = (await load()) as NodeRedis;
      const client = createCluster({ rootNodes: ports.map((port) => ({ url: url(port) })), defaults: { ...user } });
      client.on("error", () => undefined);
      await client.connect();
      return { client, close: () => client.close() };
    },
  };
}

const glide: Library = {
  async connect(port) {
    const { GlideClient, Logger } = await import("@valkey/valkey-glide");
    // It writes a line for each script that a server does not have yet.
    Logger.setLoggerConfig("off");
    const client = await GlideClient.createClient({ addresses: [{ host, port }], requestTimeout: 60_000 });
    return { client, close: async () => client.close() };
  },
  async connectCluster(ports, user) {
    const { GlideClusterClient, Logger } = await import("@valkey/valkey-glide");
    Logger.setLoggerConfig("off");
    const addresses = ports.map((port) => ({ host, port }));
    const client = await GlideClusterClient.createClient({ addresses, requestTimeout: 60_000, ...(user && { credentials: user }) });
    return { client, close: async () => client.close() };
  },
};

const upstash: Library = {
  async connect(port) {
    const { Redis } = await import("@upstash/redis");
    const server = await startRestServer(port, "a token");
    return { client: new Redis({ url: server.url, token: "a token" }), close: () => server.stop() };
  },
  connectCluster: () => Promise.reject(new Error("A REST API is one server.")),
};

export type LibraryName = "ioredis 6" | "ioredis 5" | "redis 6" | "redis 5";

export const libraries: Readonly<Record<LibraryName, Library>> = {
  "ioredis 6": ioredis(() => import("ioredis")),
  "ioredis 5": ioredis(() => import("ioredis5")),
  "redis 6": nodeRedis(() => import("redis")),
  "redis 5": nodeRedis(() => import("redis5")),
};

/** More of them, which only the store takes. */
export const storeLibraries = {
  ...libraries,
  iovalkey: ioredis(() => import("iovalkey")),
  "Valkey GLIDE": glide,
  "@upstash/redis": upstash,
} satisfies Readonly<Record<string, Library>>;

export type StoreLibraryName = keyof typeof storeLibraries;
