import { isIP } from "node:net";
import { atMost } from "@floodgate/core/store";
import { parseRedisUrl, type RedisAddress } from "@floodgate/store-redis";
import { Cluster, Redis } from "ioredis";
import { Failure } from "../failure.js";
import type { RedisOptions } from "../options.js";

/**
 * Connects to Redis, calls `use`, and closes the connection.
 * @throws Failure if Redis does not answer within `connectMs` milliseconds. The default is short, because a person waits.
 */
export async function withRedis<T>(options: RedisOptions, use: (redis: Redis | Cluster) => Promise<T>, connectMs = 3000): Promise<T> {
  const address = addressOf(options.redis);
  const server = new Redis({
    ...connection,
    ...address,
    tls: address.tls ? { servername: isIP(address.host) === 0 ? address.host : "" } : undefined,
    retryStrategy: () => null,
  });
  const redis = options.cluster === true ? clusterOf(address) : server;
  try {
    // A Cluster's client does not say why it cannot connect.
    await connected(server, address, connectMs);
    if (redis !== server) await connected(redis, address, connectMs);
    return await use(redis);
  } catch (error) {
    if (!/\bMOVED \d/.test((error as Error).message)) throw error;
    throw new Failure("unreachable", `Redis at ${address.place} is a node of a Cluster. Add --cluster.`, { cause: error });
  } finally {
    redis.disconnect();
    server.disconnect();
  }
}

/** No command is retried: the user can run the command again. Closing does not wait, because all replies have arrived by then. */
const connection = { lazyConnect: true, disconnectTimeout: 0, maxRetriesPerRequest: 0 } as const;

function clusterOf({ host, port, username, password, db, tls, path }: RedisAddress): Cluster {
  if (path !== undefined) throw new Failure("usage", `a Redis Cluster has no single socket such as ${path}. Write redis://host:port.`);
  if (db !== 0) throw new Failure("usage", `a Redis Cluster has only database 0, not ${db}. Remove /${db} from the URL.`);
  return new Cluster([{ host, port }], {
    lazyConnect: true,
    clusterRetryStrategy: () => null,
    // A certificate is for the name of a node, not for its address.
    ...(tls && { dnsLookup: (name, use) => use(null, name) }),
    redisOptions: { ...connection, username, password, ...(tls && { tls: {} }) },
  });
}

function addressOf(text: string | undefined): RedisAddress {
  const example = "--redis redis://user:password@127.0.0.1:6379/0";
  // A variable that is set to nothing is not set.
  if (text === undefined || text === "")
    throw new Failure("usage", `the address of Redis is missing. Write ${example}, or set FLOODGATE_REDIS.`);
  const address = parseRedisUrl(text);
  if (address !== undefined) return address;
  // The URL is not shown, because it may contain a password.
  throw new Failure(
    "usage",
    `the Redis URL is invalid. Write ${example}, with rediss:// for TLS, or unix:///run/redis.sock?db=0. The number is the database; redis:// takes no ? and no #. Percent-encode special characters of the password.`,
  );
}

async function connected(redis: Redis | Cluster, address: RedisAddress, connectMs: number): Promise<void> {
  // The library reports in events why it gives up, and that a database does not exist.
  let reported: Error | undefined;
  const listen = (error: Error): void => {
    // Later ones are its consequences.
    reported ??= error;
  };
  redis.on(redis.isCluster ? "node error" : "error", listen);
  redis.on("error", () => undefined);
  try {
    await atMost(connectMs, redis.connect(), () => new Error(`no answer within ${connectMs / 1000} s`));
  } catch (error) {
    throw unreachable(address, reported ?? (error as Error));
  }
  if (reported !== undefined && !redis.isCluster) throw unreachable(address, reported);
}

function unreachable(address: RedisAddress, cause: Error): Failure {
  const [errorCode] = /^[A-Z]+(?= )/.exec(cause.message) ?? [];
  const isRefused = (cause as NodeJS.ErrnoException).code === "ECONNREFUSED";
  const what = isRefused ? "refuses the connection. Nothing listens there" : errorCode === undefined ? "does not answer" : "refuses";
  let why = cause.message;
  if (errorCode === "NOAUTH") why = "it needs a password. Write redis://:password@host or redis://user:password@host";
  if (/SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/.test((cause as NodeJS.ErrnoException).code ?? ""))
    why += ". If you trust its authority, name the file in NODE_EXTRA_CA_CERTS";
  return new Failure("unreachable", `Redis at ${address.place} ${what}: ${why}`, { cause });
}
