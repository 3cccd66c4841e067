import { prefixed, RedisClient, type Run } from "./client.js";

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
  protected readonly redis: AnyNodeRedis;

  constructor(redis: NodeRedis | NodeRedisSentinel | NodeRedisCluster) {
    super(redis._keyPrefix, "nodeClient" in redis);
    this.redis = redis as AnyNodeRedis;
  }

  override get database(): number {
    return this.redis.options?.database ?? 0;
  }

  get isReady(): boolean {
    const { isOpen, isReady, slots } = this.redis;
    return slots ? isOpen && slots.length > 0 : isReady;
  }

  override wake(): string | undefined {
    return this.redis.isOpen ? undefined : "the client is not connected: call `await client.connect()` first, and close it after the app";
  }

  /** The library itself writes all commands of one event loop turn to a server at once. */
  send(runs: readonly Run[]): Promise<unknown>[] {
    return runs.map((run) => {
      const { command, args, firstKey } = prefixed(run, this.keyPrefix);
      const words = [command, ...args];
      if (this.isCluster) return this.redis.sendCommand(firstKey, false, words);
      return "getSentinelNode" in this.redis ? this.redis.sendCommand(false, words) : this.redis.sendCommand(words);
    });
  }

  override serverOf(key: string): string {
    return this.redis.slots?.[this.slotOf(key)]?.master.id ?? "";
  }
}

/** What is used of any of these clients. */
interface AnyNodeRedis extends Prefixing {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly slots?: NodeRedisCluster["slots"];
  readonly options?: NodeRedis["options"];
  // biome-ignore lint/suspicious/noExplicitAny: clients differ in the arguments before the command
  sendCommand(...args: any[]): Promise<unknown>;
}
