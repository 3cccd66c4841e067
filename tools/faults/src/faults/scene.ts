import {
  type RedisCluster,
  type RedisConfig,
  type RedisSentinel,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
  startSentinel,
  type TcpProxy,
} from "@floodgate/test-servers";
import { connect, connectBySentinel, connectCluster } from "./clients.js";
import type { Scene } from "./fault.js";

/** A Redis behind a proxy. */
export interface Servers {
  readonly redis: RedisServer;
  readonly proxy: TcpProxy;
}

export interface Acts<On> {
  strike(on: On): unknown;
  lift(on: On): unknown;
}

export interface RedisActs extends Acts<Servers> {
  readonly config?: RedisConfig;
  /** Runs before any client connects. */
  before?(on: Servers): unknown;
}

export async function redisScene({ strike, lift, config = {}, before }: RedisActs): Promise<Scene> {
  const redis = await startRedis({ config });
  const proxy = await startProxy(redis.port);
  const servers = { redis, proxy };
  await before?.(servers);
  return {
    clients: connect(proxy.port),
    strike: () => strike(servers),
    lift: () => lift(servers),
    stop() {
      proxy.stop();
      return redis.stop();
    },
  };
}

export async function clusterScene({ strike, lift }: Acts<RedisCluster>): Promise<Scene> {
  const cluster = await startCluster();
  const clients = await connectCluster(cluster.nodes.map(({ port }) => port));
  return { clients, strike: () => strike(cluster), lift: () => lift(cluster), stop: () => cluster.stop() };
}

export async function sentinelScene({ strike, lift }: Acts<RedisSentinel>): Promise<Scene> {
  const group = await startSentinel();
  const clients = await connectBySentinel(group.name, group.sentinel.port);
  return { clients, strike: () => strike(group), lift: () => lift(group), stop: () => group.stop() };
}
