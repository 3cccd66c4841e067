import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { rmSync, symlinkSync } from "node:fs";
import { createConnection } from "node:net";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { Redis, ReplyError } from "ioredis";
import { loopback } from "./port.js";
import { PrivateServer, startOnSparePort } from "./private-server.js";
import { program } from "./programs.js";
import { until } from "./until.js";

/** A reply. An error inside an array is a value; an error as the whole reply rejects the command. */
export type Reply = string | number | null | Error | Reply[];

/** Directives of a server's config file with their values; an array repeats a directive. */
export type RedisConfig = Readonly<Record<string, string | number | readonly string[]>>;

/** The commands that a server executes, as MONITOR writes them: `1790000000.000000 [0 127.0.0.1:40000] "get" "key"`. */
export interface Monitor {
  /** All commands so far, oldest first; those of scripts are marked `lua`. */
  lines(): Promise<readonly string[]>;
  /** Stops monitoring. */
  stop(): void;
}

/** A private redis-server (or valkey-server, or sentinel). It comes back empty after a restart. `startRedis` makes one. */
export class RedisServer extends PrivateServer {
  #control: Redis | undefined;

  constructor(binary: string, port: number, config: RedisConfig, flags: readonly string[]) {
    // The program may have another name, but acts as a server only if it is run under a server's name.
    const program = basename(binary).replace("check-rdb", "server");
    super(
      {
        name: "Redis",
        files: ({ dir }) => ({ "server.conf": configFile({ port, bind: loopback, dir, ...config }) }),
        prepare: ({ dir }) => symlinkSync(binary, join(dir, program)),
        command: ({ dir }) => [join(dir, program), join(dir, "server.conf"), ...flags],
        // Make sure that this process is the one that listens on the port.
        ready: async (server) => (await (server as RedisServer).#processId()) === server.pid,
      },
      port,
    );
  }

  override async start(): Promise<void> {
    // Remove files that a replication left.
    rmSync(join(this.dir, "dump.rdb"), { force: true });
    await super.start();
  }

  async #processId(): Promise<number> {
    const info = await Promise.race([this.info("server"), this.exited]);
    return Number(info?.["process_id"]);
  }

  /**
   * Sends a command over this object's own connection, which counts as one client: `command("SCRIPT", "FLUSH")`.
   * @throws ReplyError if the server replies with an error, Error if it cannot be reached.
   */
  async command(...words: readonly (string | number | Buffer)[]): Promise<Reply> {
    if (this.#control === undefined || /^(?:close|end)$/.test(this.#control.status)) this.#control = connect(this.port);
    const [name, ...args] = words;
    try {
      return (await this.#control.call(String(name), ...args)) as Reply;
    } catch (cause) {
      if (cause instanceof ReplyError) throw cause;
      throw new Error(`The server on port ${this.port} did not answer before the connection closed.`, { cause });
    }
  }

  /** The fields of a section of INFO. */
  async info(section: string): Promise<Record<string, string>> {
    return fieldsOf(await this.command("INFO", section));
  }

  /** Starts to record the commands that the server executes. */
  monitor(): Promise<Monitor> {
    return startMonitor(this);
  }

  override async stop(): Promise<void> {
    await this.kill();
    this.#control?.disconnect();
    await super.stop();
  }
}

/** A client that asks for nothing by itself and gives up at once. */
function connect(port: number): Redis {
  const onlyAsTold = { enableReadyCheck: false, disableClientInfo: true, protocol: 2 } as const;
  const redis = new Redis({ ...onlyAsTold, host: loopback, port, retryStrategy: null, maxRetriesPerRequest: 0 });
  // Commands say it too.
  return redis.on("error", () => undefined);
}

async function startMonitor(server: RedisServer): Promise<Monitor> {
  const lines: string[] = [];
  // Not by ioredis, which loses count of replies if commands of other clients arrive with the answer to MONITOR.
  const socket = createConnection(server.port, loopback);
  await once(socket, "connect");
  const received = createInterface(socket);
  // A server that is killed may reset the connection.
  socket.on("error", () => undefined).write("MONITOR\r\n");
  await once(received, "line");
  received.on("line", (line) => lines.push(line.slice(1)));
  return {
    async lines() {
      // Lines arrive later than the replies, but in order: when our command's own line is here, so are all earlier ones.
      const mark = randomUUID();
      await server.command("ECHO", mark);
      const isMark = (line: string): boolean => line.includes(mark);
      await until("the monitor hears what was executed", async () => lines.some(isMark));
      lines.splice(lines.findIndex(isMark), 1);
      return [...lines];
    },
    stop: () => void socket.destroy(),
  };
}

function configFile(config: RedisConfig): string {
  return Object.entries(config)
    .flatMap(([directive, values]) => (Array.isArray(values) ? values : [values]).map((value) => `${directive} ${value}\n`))
    .join("");
}

/** Parses the fields of an INFO or CLUSTER INFO reply. */
export function fieldsOf(reply: Reply): Record<string, string> {
  const fields = String(reply).matchAll(/^([^#:\r\n]+):(.*)\r$/gm);
  return Object.fromEntries(Array.from(fields, ([, name, value]) => [name, value]));
}

export interface RedisOptions {
  /** The program; default redis-server. */
  binary?: string | undefined;
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
  if (replicaOf !== undefined) await until(`the replica on port ${server.port} is in sync`, () => isInSync(server, replicaOf));
  return server;
}

/** Starts a server with exactly these directives. */
export function startServer(options: Omit<RedisOptions, "replicaOf">, flags: readonly string[] = []): Promise<RedisServer> {
  const { binary = program("redis-server"), config = {} } = options;
  return startOnSparePort((port) => new RedisServer(binary, port, config, flags));
}

/** Whether a replica is in sync with its master. */
export async function isInSync(replica: RedisServer, master: { readonly port: number }): Promise<boolean> {
  const { master_port: port, master_link_status: link } = await replica.info("replication");
  return port === String(master.port) && link === "up";
}
