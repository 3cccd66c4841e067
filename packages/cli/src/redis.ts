import { Cluster, Redis } from "ioredis";
import { Failure } from "./failure.js";
import type { RedisOptions } from "./options.js";

/**
 * Does something with a connection to Redis, which is closed afterwards.
 * @throws Failure if it is not connected within `connectMs` milliseconds, because a person waits at the terminal.
 */
export async function withRedis<T>(options: RedisOptions, use: (redis: Redis | Cluster) => Promise<T>, connectMs = 3000): Promise<T> {
  const address = addressOf(options.redis);
  const redis = options.cluster === true ? clusterOf(address) : new Redis({ ...connection, ...address, retryStrategy: () => null });
  try {
    await connected(redis, address, connectMs);
    return await use(redis);
  } catch (error) {
    if (!/\bMOVED \d/.test((error as Error).message)) throw error;
    throw new Failure("unreachable", `Redis at ${place(address)} is a node of a Cluster. Add --cluster.`, { cause: error });
  } finally {
    redis.disconnect();
  }
}

/** Nothing is sent twice: whoever called can call again. All answers have come when it is closed, so that nothing is waited for then. */
const connection = { lazyConnect: true, disconnectTimeout: 0, maxRetriesPerRequest: 0 } as const;

function clusterOf({ host, port, username, password, db, tls }: Address): Cluster {
  if (db !== 0) throw new Failure("usage", `a Cluster has no database ${db}, only 0. Leave /${db} out of the address.`);
  return new Cluster([{ host, port }], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    redisOptions: { ...connection, username, password, tls },
  });
}

/** What an URL says of a Redis, as the library takes it. */
interface Address {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly db: number;
  readonly tls: Record<string, never> | undefined;
}

function addressOf(text: string | undefined): Address {
  const example = "--redis redis://user:password@127.0.0.1:6379/0";
  if (text === undefined) throw new Failure("usage", `which Redis? Write ${example}, or set FLOODGATE_REDIS.`);
  try {
    const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(text);
    if (/^rediss?:$/.test(protocol) && hostname !== "" && /^(\/\d*)?$/.test(pathname + search + hash)) {
      return {
        host: hostname.replace(/^\[|\]$/g, ""),
        port: Number(port || 6379),
        username: decodeURIComponent(username),
        password: decodeURIComponent(password),
        db: Number(pathname.slice(1)),
        tls: protocol === "rediss:" ? {} : undefined,
      };
    }
  } catch {
    // It is no URL, or holds a percent sign that begins no character.
  }
  // Not shown, nor what the URL's parser says of it: it may hold a password.
  throw new Failure(
    "usage",
    `that is no address of a Redis. Write ${example} (rediss:// for TLS; the number is the database, and no ? or # follows; in a password what is neither a letter nor a digit as %xx).`,
  );
}

async function connected(redis: Redis | Cluster, address: Address, connectMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  // The library tells in events why it gives up, and that it has no such database.
  let said: Error | undefined;
  const listen = (error: Error): void => {
    said = error;
  };
  redis.on(redis.isCluster ? "node error" : "error", listen);
  redis.on("error", () => undefined);
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${connectMs / 1000} s`)), connectMs);
  });
  try {
    await Promise.race([redis.connect(), late]);
  } catch (error) {
    throw unreachable(address, said ?? (error as Error));
  } finally {
    clearTimeout(timer);
  }
  if (said !== undefined && !redis.isCluster) throw unreachable(address, said);
}

/** Without user and password. */
function place({ host, port }: Address): string {
  return `${host}:${port}`;
}

function unreachable(address: Address, cause: Error): Failure {
  const [refusal] = /^[A-Z]+(?= )/.exec(cause.message) ?? [];
  const what = refusal === undefined ? "does not answer" : "refuses";
  const why = refusal === "NOAUTH" ? "it wants a password. Write redis://:password@host or redis://user:password@host" : cause.message;
  return new Failure("unreachable", `Redis at ${place(address)} ${what}: ${why}`, { cause });
}
