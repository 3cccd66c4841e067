import { atMost, invalidOption } from "@floodgate/core/store";

/** The used part of `Redis` and `Cluster` of ioredis 5 and 6. */
interface Ioredis {
  readonly status: string;
  connect(): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: the overloads of two major versions
  call(command: string, ...args: any[]): Promise<unknown>;
}

/** The used part of `createClient`, `createSentinel` and `createCluster` of redis (node-redis) 5 and 6. */
interface NodeRedis {
  readonly isOpen: boolean;
  readonly isReady?: boolean;
  /** What the client writes before each key. Raw commands are sent as they are. */
  readonly _keyPrefix?: string | Buffer | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: clients differ in the arguments before the command
  sendCommand(...args: any[]): Promise<unknown>;
}

/** The app's own client of ioredis or of redis (node-redis). It is never closed or reconfigured. */
export type DashboardRedis = Ioredis | NodeRedis;

/** Sends a command about one key, or several of one slot. Rejects if Redis does not answer in time. */
export type Send = (key: string, command: string, ...args: string[]) => Promise<unknown>;

const timeoutMs = 1000;

/** Clients keep what they have sent until the reply comes. If Redis hangs, no more than so many commands wait for it. */
const maxUnanswered = 100;

/** @throws FloodgateError unless it is a supported client. */
export function senderOf(redis: DashboardRedis): Send {
  const send = ofIoredis(redis) ?? ofNodeRedis(redis);
  let unanswered = 0;
  if (send !== undefined) {
    return async (key, command, ...args) => {
      if (unanswered >= maxUnanswered) throw new Error("it has not answered the last commands");
      unanswered++;
      const reply = send(key, [command, key, ...args]);
      const answered = (): void => {
        unanswered--;
      };
      reply.then(answered, answered);
      return atMost(timeoutMs, reply, () => new Error(`it did not answer within ${timeoutMs} ms`));
    };
  }
  throw invalidOption(
    'dashboard: `redis` must be a client of ioredis or of redis (node-redis). Write redis: new Redis("redis://127.0.0.1:6379").',
    ["redis"],
  );
}

type SendWords = (key: string, words: readonly [string, ...string[]]) => Promise<unknown>;

function ofIoredis(redis: unknown): SendWords | undefined {
  if (!has<Ioredis>(redis, "call") || typeof redis.status !== "string") return undefined;
  return async (_, words) => {
    if (redis.status === "wait") redis.connect().catch(() => undefined);
    // A command in the library's queue may be sent long after somebody waits for it.
    if (redis.status !== "ready") throw new Error(`the client is not connected (${redis.status})`);
    return redis.call(...words);
  };
}

function ofNodeRedis(redis: unknown): SendWords | undefined {
  if (!has<NodeRedis>(redis, "sendCommand") || typeof redis.isOpen !== "boolean") return undefined;
  return async (key, words) => {
    if (!(redis.isReady ?? redis.isOpen)) throw new Error("the client is not connected");
    const keyPrefix = String(redis._keyPrefix ?? "");
    const [command, ...args] = words;
    const stored = args.map((arg, i) => (i === 0 || command === "MGET" ? keyPrefix + arg : arg));
    return redis.sendCommand(...routingOf(redis, keyPrefix + key), [command, ...stored]);
  };
}

/** The arguments before the command: of a cluster's client and of Sentinel's. */
function routingOf(redis: unknown, key: string): unknown[] {
  if (has(redis, "nodeClient")) return [key, false];
  return has(redis, "getSentinelNode") ? [false] : [];
}

function has<Client>(client: unknown, method: string): client is Client {
  return typeof client === "object" && client !== null && typeof (client as Record<string, unknown>)[method] === "function";
}
