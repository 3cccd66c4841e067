import calculateSlot from "cluster-key-slot";
import type { RedisClient, Run } from "./client.js";

/** The used part of a `createClient` client (redis 5 and 6). */
export interface NodeRedis {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly options?: { readonly database?: number | undefined } | undefined;
  sendCommand(args: string[]): Promise<unknown>;
}

/** The used part of a `createSentinel` client. */
export interface NodeRedisSentinel {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  getSentinelNode(): unknown;
  readonly options?: undefined;
  sendCommand(isReadonly: boolean | undefined, args: string[]): Promise<unknown>;
}

/** The used part of a `createCluster` client. */
export interface NodeRedisCluster {
  readonly isOpen: boolean;
  readonly slots: readonly { readonly master: { readonly id: string } }[];
  sendCommand(firstKey: string, isReadonly: boolean | undefined, args: string[]): Promise<unknown>;
}

export class NodeRedisClient implements RedisClient {
  readonly isCluster = false;
  readonly #redis: NodeRedis | NodeRedisSentinel;
  readonly #send: (command: string[]) => Promise<unknown>;

  constructor(redis: NodeRedis | NodeRedisSentinel) {
    this.#redis = redis;
    this.#send = "getSentinelNode" in redis ? (command) => redis.sendCommand(false, command) : (command) => redis.sendCommand(command);
  }

  get place(): RedisClient["place"] {
    return { database: this.#redis.options?.database ?? 0, keyPrefix: "" };
  }

  get isReady(): boolean {
    return this.#redis.isReady;
  }

  wake(): string | undefined {
    return wake(this.#redis);
  }

  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map(({ command, args }) => this.#send([command, ...args]));
  }

  slotOf(): number {
    return 0;
  }

  serverOf(): string {
    return "";
  }
}

export class NodeRedisClusterClient implements RedisClient {
  readonly isCluster = true;
  readonly place = { database: 0, keyPrefix: "" };
  readonly #cluster: NodeRedisCluster;

  constructor(cluster: NodeRedisCluster) {
    this.#cluster = cluster;
  }

  get isReady(): boolean {
    return this.#cluster.isOpen && this.#cluster.slots.length > 0;
  }

  wake(): string | undefined {
    return wake(this.#cluster);
  }

  /** The library itself writes all commands of one event loop turn to a server at once. */
  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map(({ command, args, firstKey }) => this.#cluster.sendCommand(firstKey, false, [command, ...args]));
  }

  slotOf(key: string): number {
    return calculateSlot(key);
  }

  serverOf(slot: number): string {
    return this.#cluster.slots[slot]?.master.id ?? "";
  }
}

function wake({ isOpen }: { isOpen: boolean }): string | undefined {
  return isOpen ? undefined : "the client is not connected: call `await client.connect()` first, and do not close it before the app";
}
