import { FloodgateError } from "@floodgate/core";
import { reasonOf } from "./reason.js";

/** What is used of `Redis` and `Cluster` of ioredis 5 and 6. */
interface Ioredis {
  readonly status: string;
  readonly isCluster?: boolean;
  readonly options: { readonly keyPrefix?: string | Buffer | undefined };
  // biome-ignore lint/suspicious/noExplicitAny: the overloads of two major versions
  call(command: string, ...args: any[]): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: those of Redis and Cluster differ
  duplicate(...args: any[]): any;
}

/** What is used of what `createClient`, `createCluster` and `createSentinel` of redis (node-redis) 5 and 6 make. */
interface NodeRedis {
  readonly isOpen: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: what goes before the command differs
  sendCommand(...args: any[]): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: a client like this one
  duplicate(...args: any[]): any;
}

/** A client of the user's, of ioredis or of redis (node-redis). It is never closed nor set up anew. */
export type RulesRedis = Ioredis | NodeRedis;

/** What rules need of Redis. */
export interface Database {
  /**
   * @throws FloodgateError `FLOODGATE_RULES_UNAVAILABLE` where Redis does not answer in time, or answers an error;
   * `FLOODGATE_FOREIGN_VALUE` where what the key holds cannot be rules.
   */
  command(name: string, ...words: string[]): Promise<unknown>;
  /**
   * Subscribes to the channel that has the key's name, on a connection of its own. `heard` is also called whenever the subscription
   * begins (anew), for what was missed. Where it cannot begin, nobody is told: a poll is the net. Answers how to stop.
   */
  subscribe(heard: () => void): () => Promise<void>;
}

/** @throws FloodgateError `FLOODGATE_INVALID_OPTION` where these are no client and no key. */
export function databaseOf(where: string, redis: RulesRedis, key: string): Database {
  if (typeof key !== "string" || key === "")
    throw invalid(where, "`key` must be a text that is not empty, the name of a key in Redis", '"floodgate:rules"');
  if (has<Ioredis>(redis, "call") && typeof redis.status === "string") return ofIoredis(redis, key);
  if (has<NodeRedis>(redis, "sendCommand") && typeof redis.isOpen === "boolean") return ofNodeRedis(redis, key);
  throw invalid(where, "`redis` must be a connected client of ioredis or of redis (node-redis)", 'new Redis("redis://127.0.0.1:6379")');
}

function ofIoredis(redis: Ioredis, key: string): Database {
  const channel = `${redis.options.keyPrefix ?? ""}${key}`;
  return {
    command: (name, ...words) => inTime(key, redis.call(name, ...words)),

    subscribe(heard) {
      // Each time that it is ready it subscribes by itself, so that it is known when.
      const options = { keyPrefix: "", lazyConnect: false, autoResubscribe: false };
      const second = redis.isCluster ? redis.duplicate([], options) : redis.duplicate(options);
      second.on("error", ignore);
      second.on("message", heard);
      second.on("ready", () => second.subscribe(channel).then(heard, ignore));
      return async () => second.disconnect();
    },
  };
}

function ofNodeRedis(redis: NodeRedis, key: string): Database {
  const before = has(redis, "nodeClient") ? [key, false] : has(redis, "getSentinelNode") ? [false] : [];
  return {
    command: (name, ...words) => inTime(key, redis.sendCommand(...before, [name, ...words])),

    subscribe(heard) {
      const second = redis.duplicate();
      let connected = false;
      let closed = false;
      let asked = false;
      // What it has subscribed to it renews by itself, but not what a lost connection cut short.
      const subscribe = (): void => {
        if (asked) return;
        asked = true;
        second.subscribe(key, heard).then(heard, () => {
          asked = false;
        });
      };
      second.on("error", ignore);
      second.on("ready", () => {
        heard();
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
        // What is being connected would not notice: it is closed when it is connected, or has failed once more.
        second.on("error", destroy);
        if (connected) await destroy();
      };
    },
  };
}

/** Far longer than Redis takes; a library may keep a command for as long as it cannot connect. */
const timeoutMs = 5000;

async function inTime(key: string, reply: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Redis has not answered within ${timeoutMs} ms`)), timeoutMs).unref();
  });
  try {
    return await Promise.race([reply, late]);
  } catch (error) {
    throw faultOf(key, error);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * What Redis, or the script of a push (`NORULES`), answers where the key holds something else than rules; within a script it says more
 * before and after it.
 */
const foreign: readonly (readonly [says: RegExp, what: string])[] = [
  [/\bWRONGTYPE\b/, "a value of another type than rules have"],
  [/\bNORULES\b/, "a hash that has neither `version` nor `rules`"],
  [/\bhash value is not an integer\b/, "a hash whose `version` is no whole number"],
];

function faultOf(key: string, error: unknown): FloodgateError {
  const why = reasonOf(error);
  for (const [says, what] of foreign) {
    if (!says.test(why)) continue;
    const message = `${key}: this key of Redis holds ${what}. Use another key, or delete it (DEL ${key}).`;
    return new FloodgateError("FLOODGATE_FOREIGN_VALUE", message, { cause: error });
  }
  return new FloodgateError("FLOODGATE_RULES_UNAVAILABLE", `${key}: the rules in Redis cannot be reached: ${why}.`, { cause: error });
}

function has<Client>(client: unknown, method: string): client is Client {
  return typeof client === "object" && client !== null && typeof (client as Record<string, unknown>)[method] === "function";
}

function invalid(where: string, what: string, example: string): FloodgateError {
  return new FloodgateError("FLOODGATE_INVALID_OPTION", `${where}: ${what}. Write ${example}.`);
}

function ignore(): void {}
