import { follows } from "./group.js";
import { loopback } from "./port.js";
import { started } from "./private-server.js";
import { program } from "./programs.js";
import { type RedisConfig, RedisServer } from "./redis-server.js";
import { until } from "./until.js";

export interface RedisOptions {
  /** The program; default redis-server. */
  binary?: string | undefined;
  /** Default: a free port. */
  port?: number;
  /** Directives of the config file, such as `{ maxmemory: "2mb", maxclients: 10 }`. They override the defaults, which disable persistence. */
  config?: RedisConfig;
  /** The server to replicate. The new server is in sync when the promise resolves. */
  replicaOf?: { readonly port: number };
}

/** No persistence. Diskless synchronisation is off, because it can leave a replica behind by a second. */
const defaults: RedisConfig = { save: '""', appendonly: "no", "repl-diskless-sync": "no" };

/**
 * Starts a redis-server, and resolves when it answers. It ends with this process at the latest.
 * @throws Error with the server's log if it does not start.
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const { replicaOf } = options;
  const replica = replicaOf === undefined ? {} : { replicaof: `${loopback} ${replicaOf.port}` };
  const server = await startServer({ ...options, config: { ...defaults, ...replica, ...options.config } });
  if (replicaOf !== undefined) await until(`the replica on port ${server.port} is in sync`, () => follows(server, replicaOf));
  return server;
}

/** Starts a server with exactly these directives. */
export function startServer(options: Omit<RedisOptions, "replicaOf">, flags: readonly string[] = []): Promise<RedisServer> {
  const { binary = program("redis-server"), config = {}, port } = options;
  return started((port) => new RedisServer(binary, port, config, flags), port);
}
