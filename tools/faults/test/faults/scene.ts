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
import { type Client, connect, connectBySentinel, connectCluster } from "./clients.js";

/** A key that clients read to prove that they are connected. In a Cluster, the master of its slot is the one that fails. */
export const probe = "probe";

/** A failure of Redis or of the connection to it. */
export interface Fault {
  readonly name: string;
  /** When Redis loses its counts. */
  readonly forgets?: "when struck" | "when lifted";
  /** Whether Redis may keep charging while its replies are lost. */
  readonly decides?: boolean;
  /** Whether the fault begins before any client has connected. */
  readonly atBoot?: boolean;
  /** Whether the fault may end before a decision times out. */
  readonly brief?: boolean;
  start(): Promise<Scene>;
}

/** Servers, their clients, and the fault. */
export interface Scene {
  readonly clients: readonly Client[];
  /** Starts the fault, and resolves when it is active. */
  strike(): unknown;
  /** Ends the fault. */
  lift(): unknown;
  stop(): Promise<unknown>;
}

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
  const stop = (): Promise<void> => {
    proxy.stop();
    return redis.stop();
  };
  const servers = { redis, proxy, stop };
  await before?.(servers);
  return sceneOf(servers, connect(proxy.port), { strike, lift });
}

export async function clusterScene(acts: Acts<RedisCluster>): Promise<Scene> {
  const cluster = await startCluster();
  return sceneOf(cluster, await connectCluster(cluster.nodes.map(({ port }) => port)), acts);
}

export async function sentinelScene(acts: Acts<RedisSentinel>): Promise<Scene> {
  const group = await startSentinel();
  return sceneOf(group, await connectBySentinel(group.name, group.sentinel.port), acts);
}

function sceneOf<On>(on: On & { stop(): Promise<unknown> }, clients: readonly Client[], { strike, lift }: Acts<On>): Scene {
  return { clients, strike: () => strike(on), lift: () => lift(on), stop: () => on.stop() };
}
