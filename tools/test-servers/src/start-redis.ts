import { redisServer } from "./binary.js";
import { follows } from "./group.js";
import { loopback, sparePort } from "./port.js";
import { PortTakenError, type RedisConfig, RedisServer } from "./redis-server.js";
import { until } from "./until.js";

export interface RedisOptions {
  /** The program; default `redisServer()`. */
  binary?: string | undefined;
  /** Default: a spare one. */
  port?: number;
  /** Directives of the config file, over those that make it keep nothing on disk: `{ maxmemory: "2mb", maxclients: 10 }`. */
  config?: RedisConfig;
  /** The server whose replica it becomes: in sync when it is handed over. */
  replicaOf?: { readonly port: number };
}

/** Nothing stays on disk. A diskless synchronisation, though, may leave a replica for a second without what is written meanwhile. */
const defaults: RedisConfig = { save: '""', appendonly: "no", "repl-diskless-sync": "no" };

/**
 * Starts a redis-server, which ends with this process where nobody stops it before, and resolves when it answers.
 * @throws Error where it does not start, with what its log says.
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const { replicaOf } = options;
  const replica = replicaOf === undefined ? {} : { replicaof: `${loopback} ${replicaOf.port}` };
  const server = await startServer({ ...options, config: { ...defaults, ...replica, ...options.config } });
  if (replicaOf !== undefined) await until(`the replica on port ${server.port} is in sync`, () => follows(server, replicaOf));
  return server;
}

/** Starts a server of Redis' kind with just the directives it is given. */
export async function startServer(options: Omit<RedisOptions, "replicaOf">, flags: readonly string[] = []): Promise<RedisServer> {
  const binary = options.binary ?? (await redisServer());
  for (;;) {
    const server = new RedisServer(binary, options.port ?? (await sparePort()), options.config ?? {}, flags);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      // Somebody else was quicker to take a spare port: the next is tried.
      if (!(error instanceof PortTakenError) || options.port !== undefined) throw error;
    }
  }
}
