import { prefixed, RedisClient, type Run } from "./client.js";
import { slotOf } from "./slot.js";

/** What each kind of client has that writes something before each key. Raw commands are sent as they are. */
interface Prefixing {
  readonly _keyPrefix?: string | Buffer | undefined;
}

/** The used part of a `createClient` client (redis 5 and 6). */
export interface NodeRedis extends Prefixing {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly options?: { readonly database?: number | undefined } | undefined;
  sendCommand(args: string[]): Promise<unknown>;
}

/** The used part of a `createSentinel` client. */
export interface NodeRedisSentinel extends Prefixing {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  getSentinelNode(): unknown;
  readonly options?: undefined;
  sendCommand(isReadonly: boolean | undefined, args: string[]): Promise<unknown>;
}

/** The used part of a `createCluster` client. */
export interface NodeRedisCluster extends Prefixing {
  readonly isOpen: boolean;
  readonly slots: readonly { readonly master: { readonly id: string } }[];
  sendCommand(firstKey: string, isReadonly: boolean | undefined, args: string[]): Promise<unknown>;
}

export class NodeRedisClient extends RedisClient {
  readonly #redis: NodeRedis | NodeRedisSentinel;
  readonly #send: (command: string[]) => Promise<unknown>;
  readonly #keyPrefix: string;

  constructor(redis: NodeRedis | NodeRedisSentinel) {
    super();
    this.#redis = redis;
    this.#keyPrefix = String(redis._keyPrefix ?? "");
    this.#send = "getSentinelNode" in redis ? (command) => redis.sendCommand(false, command) : (command) => redis.sendCommand(command);
  }

  override get place(): RedisClient["place"] {
    return { database: this.#redis.options?.database ?? 0, keyPrefix: this.#keyPrefix };
  }

  get isReady(): boolean {
    return this.#redis.isReady;
  }

  override wake(): string | undefined {
    return wake(this.#redis);
  }

  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map((run) => {
      const { command, args } = prefixed(run, this.#keyPrefix);
      return this.#send([command, ...args]);
    });
  }
}

export class NodeRedisClusterClient extends RedisClient {
  override readonly isCluster = true;
  readonly #cluster: NodeRedisCluster;
  readonly #keyPrefix: string;

  constructor(cluster: NodeRedisCluster) {
    super();
    this.#cluster = cluster;
    this.#keyPrefix = String(cluster._keyPrefix ?? "");
  }

  override get place(): RedisClient["place"] {
    return { database: 0, keyPrefix: this.#keyPrefix };
  }

  get isReady(): boolean {
    return this.#cluster.isOpen && this.#cluster.slots.length > 0;
  }

  override wake(): string | undefined {
    return wake(this.#cluster);
  }

  /** The library itself writes all commands of one event loop turn to a server at once. */
  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map((run) => {
      const { command, args, firstKey } = prefixed(run, this.#keyPrefix);
      return this.#cluster.sendCommand(firstKey, false, [command, ...args]);
    });
  }

  override slotOf(key: string): number {
    return slotOf(this.#keyPrefix + key);
  }

  override serverOf(slot: number): string {
    return this.#cluster.slots[slot]?.master.id ?? "";
  }
}

function wake({ isOpen }: { isOpen: boolean }): string | undefined {
  return isOpen ? undefined : "the client is not connected: call `await client.connect()` first, and close it after the app";
}
