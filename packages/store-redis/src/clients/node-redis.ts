import { RedisClient, type Run } from "./client.js";
import { slotOf } from "./slot.js";

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

export class NodeRedisClient extends RedisClient {
  readonly #redis: NodeRedis | NodeRedisSentinel;
  readonly #send: (command: string[]) => Promise<unknown>;

  constructor(redis: NodeRedis | NodeRedisSentinel) {
    super();
    this.#redis = redis;
    this.#send = "getSentinelNode" in redis ? (command) => redis.sendCommand(false, command) : (command) => redis.sendCommand(command);
  }

  override get place(): RedisClient["place"] {
    return { database: this.#redis.options?.database ?? 0, keyPrefix: "" };
  }

  get isReady(): boolean {
    return this.#redis.isReady;
  }

  override wake(): string | undefined {
    return wake(this.#redis);
  }

  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map(({ command, args }) => this.#send([command, ...args]));
  }
}

export class NodeRedisClusterClient extends RedisClient {
  override readonly isCluster = true;
  readonly #cluster: NodeRedisCluster;

  constructor(cluster: NodeRedisCluster) {
    super();
    this.#cluster = cluster;
  }

  get isReady(): boolean {
    return this.#cluster.isOpen && this.#cluster.slots.length > 0;
  }

  override wake(): string | undefined {
    return wake(this.#cluster);
  }

  /** The library itself writes all commands of one event loop turn to a server at once. */
  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map(({ command, args, firstKey }) => this.#cluster.sendCommand(firstKey, false, [command, ...args]));
  }

  override slotOf(key: string): number {
    return slotOf(key);
  }

  override serverOf(slot: number): string {
    return this.#cluster.slots[slot]?.master.id ?? "";
  }
}

function wake({ isOpen }: { isOpen: boolean }): string | undefined {
  return isOpen ? undefined : "the client is not connected: call `await client.connect()` first, and close it after the app";
}
