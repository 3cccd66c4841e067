import { FloodgateError } from "@floodgate/core";
import { atMost, invalidOption, wrongOption } from "@floodgate/core/store";
import { reasonOf } from "./rules-error.js";

/** The used part of `Redis` and `Cluster` of ioredis 5 and 6. */
interface Ioredis {
  readonly status: string;
  readonly isCluster?: boolean;
  readonly options: { readonly keyPrefix?: string | Buffer | undefined };
  // biome-ignore lint/suspicious/noExplicitAny: the overloads of two major versions
  call(command: string, ...args: any[]): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: Redis and Cluster take different arguments
  duplicate(...args: any[]): any;
}

/** The used part of the clients of redis (node-redis) 5 and 6: `createClient`, `createCluster` and `createSentinel`. */
interface NodeRedis {
  readonly isOpen: boolean;
  /** What the client writes before each key. Raw commands and channels are sent as they are. */
  readonly _keyPrefix?: string | Buffer | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: clients differ in the arguments before the command
  sendCommand(...args: any[]): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: a client like this one
  duplicate(...args: any[]): any;
}

/** A connected client of ioredis or of redis (node-redis). It is never closed or reconfigured. */
export type RulesRedis = Ioredis | NodeRedis;

/** The commands on one Redis key, the same for both client libraries. */
export interface RulesKey {
  /**
   * @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` if Redis does not answer in time, or answers an error;
   * `FLOODGATE_FOREIGN_VALUE` if the key holds something other than rules.
   */
  command(name: string, ...args: string[]): Promise<unknown>;
  /**
   * Subscribes to the channel with the key's name, on a connection of its own. `onMessage` is also called whenever a subscription
   * starts, because messages may have been missed. Failures are ignored: polling finds what messages miss.
   * @returns a function that unsubscribes.
   */
  subscribe(onMessage: () => void): () => Promise<void>;
}

/** @throws FloodgateError `FLOODGATE_INVALID_OPTION` if the client or the key is invalid. */
export function rulesKey(where: string, redis: RulesRedis, key: string): RulesKey {
  if (typeof key !== "string" || key === "") throw wrongOption(where, "key", "the name of a Redis key", key, '"floodgate:rules"');
  if (has<Ioredis>(redis, "call") && typeof redis.status === "string") return ofIoredis(redis, key);
  if (has<NodeRedis>(redis, "sendCommand") && typeof redis.isOpen === "boolean") return ofNodeRedis(redis, key);
  throw invalidOption(
    `${where}: \`redis\` must be a connected client of ioredis or of redis (node-redis). Write new Redis("redis://127.0.0.1:6379").`,
  );
}

function ofIoredis(redis: Ioredis, key: string): RulesKey {
  const channel = `${redis.options.keyPrefix ?? ""}${key}`;
  return {
    command: (name, ...args) => inTime(key, redis.call(name, ...args)),

    subscribe(onMessage) {
      // It subscribes here on each "ready", not by `autoResubscribe`, so that `onMessage` is called then.
      const options = { keyPrefix: "", lazyConnect: false, autoResubscribe: false };
      const second = redis.isCluster ? redis.duplicate([], options) : redis.duplicate(options);
      second.on("error", ignore);
      second.on("message", onMessage);
      second.on("ready", () => second.subscribe(channel).then(onMessage, ignore));
      return async () => second.disconnect();
    },
  };
}

function ofNodeRedis(redis: NodeRedis, key: string): RulesKey {
  const stored = `${redis._keyPrefix ?? ""}${key}`;
  const routing = has(redis, "nodeClient") ? [stored, false] : has(redis, "getSentinelNode") ? [false] : [];
  return {
    command(name, ...args) {
      const words = args.map((arg, i) => (i === (name === "eval" ? 2 : 0) ? stored : arg));
      return inTime(key, redis.sendCommand(...routing, [name, ...words]));
    },

    subscribe(onMessage) {
      const second = redis.duplicate();
      let connected = false;
      let closed = false;
      let subscribed = false;
      // The library renews a subscription after a reconnect, but not one that was interrupted while it began.
      const subscribe = (): void => {
        if (subscribed) return;
        subscribed = true;
        second.subscribe(stored, onMessage).then(onMessage, () => {
          subscribed = false;
        });
      };
      second.on("error", ignore);
      second.on("ready", () => {
        onMessage();
        if (connected && !closed) subscribe();
      });
      const destroy = (): Promise<void> =>
        Promise.resolve()
          .then(() => second.destroy())
          .catch(ignore);
      second
        .connect()
        .then(() => {
          connected = true;
          if (!closed) subscribe();
          return closed ? destroy() : undefined;
        })
        .catch(ignore);
      return async () => {
        closed = true;
        // A client that is still connecting ignores `destroy`: destroy it once it is connected, or at its next error.
        second.on("error", destroy);
        if (connected) await destroy();
      };
    },
  };
}

/** Far longer than Redis takes. A library may hold a command back until it can connect. */
const timeoutMs = 5000;

async function inTime(key: string, reply: Promise<unknown>): Promise<unknown> {
  try {
    return await atMost(timeoutMs, reply, () => new Error(`Redis did not answer within ${timeoutMs} ms`));
  } catch (error) {
    throw faultOf(key, error);
  }
}

/**
 * Errors of Redis, and of the push script (`NORULES`), if the key holds something other than rules. Errors from a script have more text
 * around them.
 */
const foreignValues: readonly (readonly [error: RegExp, value: string])[] = [
  [/\bWRONGTYPE\b/, "a value that is not a hash"],
  [/\bNORULES\b/, "a hash without `version` and `rules`"],
  [/\bhash value is not an integer\b/, "a hash whose `version` is not a whole number"],
];

function faultOf(key: string, error: unknown): FloodgateError {
  const why = reasonOf(error);
  for (const [pattern, value] of foreignValues) {
    if (!pattern.test(why)) continue;
    const message = `${key}: this Redis key holds ${value}, not rules. Use another key, or delete it (DEL ${key}).`;
    return new FloodgateError("FLOODGATE_FOREIGN_VALUE", message, { cause: error });
  }
  // Redis names no command that its user may not run in a script.
  const advice = /NOPERM|ACL failure|The user executing the script/.test(why)
    ? " Allow it: ACL SETUSER <user> ~<key> &<key> +eval +exists +hincrby +hmget +hset +publish +subscribe. See docs/redis.md."
    : "";
  return new FloodgateError("FLOODGATE_RULES_UNAVAILABLE", `${key}: the rules in Redis cannot be read or written: ${why}.${advice}`, {
    cause: error,
  });
}

function has<Client>(client: unknown, method: string): client is Client {
  return typeof client === "object" && client !== null && typeof (client as Record<string, unknown>)[method] === "function";
}

function ignore(): void {}
