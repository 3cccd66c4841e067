import { once } from "node:events";
import { isIP } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseRedisUrl, type RedisAddress } from "@floodgate/store-redis";
import { Cluster, Redis, type RedisOptions } from "ioredis";
import type { Logger } from "pino";
import type { Settings } from "../config/settings.js";

/** The client of the store and the rules. It connects by itself, again and again: Redis may be down when the process starts. */
export function connectRedis(settings: Settings, password: string | undefined, log: Logger): Redis | Cluster | undefined {
  if (settings.redis === undefined) return undefined;
  const address = parseRedisUrl(settings.redis) as RedisAddress;
  const { host, port, db, tls, path, place } = address;
  const options = {
    maxRetriesPerRequest: 0,
    // After a failover, the connection leads to a replica. A new one asks the name again, which may lead to the new master.
    reconnectOnError: ({ message }) => message.includes("READONLY"),
    connectTimeout: 5000,
    // A network that drops packets closes no connection, and a machine that has gone none either: TCP tries on for up to 15 minutes.
    socketTimeout: 5000,
    username: address.username,
    password: password ?? address.password,
    ...(tls && { tls: settings.cluster ? {} : { servername: isIP(host) === 0 ? host : "" } }),
  } satisfies RedisOptions;
  // A decision that waits in a queue would end after its deadline.
  const enableOfflineQueue = false;
  const again = (attempt: number): number => Math.min(attempt * 100, 2000);
  const redis: Redis | Cluster = settings.cluster
    ? new Cluster([{ host, port }], {
        redisOptions: options,
        enableOfflineQueue,
        clusterRetryStrategy: again,
        // A certificate is for the name of a node, not for its address.
        ...(tls && { dnsLookup: (name, use) => use(null, name) }),
      })
    : new Redis({ ...options, enableOfflineQueue, host, port, ...(path !== undefined && { path }), db, retryStrategy: again });
  let failing: string | undefined;
  redis.on("error", (error: Error) => {
    // Without the database of its address, the client would go on in database 0.
    if (error.message.includes("DB index")) redis.disconnect(true);
    // The client reports each attempt.
    if (error.message === failing) return;
    failing = error.message;
    log.warn({ redis: place, reason: error.message }, "Redis does not answer");
  });
  redis.on("ready", () => {
    if (failing !== undefined) log.info({ redis: place }, "Redis answers again");
    failing = undefined;
  });
  return redis;
}

const noAnswer = "Redis does not answer.";

/** A decision is a script that writes. A replica, a full Redis and a user that may run no script answer a PING all the same. */
const probe = "return redis.call('set', KEYS[1], '1', 'px', 1000)";

/**
 * Why Redis can decide nothing now; undefined if it can.
 * @param key a key that the probe writes. It expires.
 */
export function whyUndecided(redis: Redis | Cluster, key: string, timeoutMs: number): Promise<string | undefined> {
  const asked = redis.eval(probe, 1, key).then(
    () => undefined,
    ({ name, message }: Error) => (name === "ReplyError" ? `Redis refuses to count: ${message}` : noAnswer),
  );
  return Promise.race([asked, sleep(timeoutMs, noAnswer, { ref: false })]);
}

/** How long to wait for Redis at the start. */
const firstMs = 2000;

/** Waits until Redis is connected, or the first attempt has failed, or two seconds have passed. */
export async function firstAnswer(redis: Redis | Cluster): Promise<void> {
  if (redis.status === "ready") return;
  await once(redis, "ready", { signal: AbortSignal.timeout(firstMs) }).catch(() => undefined);
}
