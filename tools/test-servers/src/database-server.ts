import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopback, sparePort } from "./port.js";
import { program } from "./programs.js";
import { atExit, ServerProcess } from "./server-process.js";
import { until } from "./until.js";

/** Databases do not run as root. As root they get this user: nobody. */
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const asUser: readonly string[] = isRoot
  ? ["/usr/bin/setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups", "--pdeathsig=KILL", "--"]
  : [];

interface Place {
  readonly dir: string;
  readonly port: number;
}

/** What one kind of database needs to run in the foreground and in its own folder. */
interface Kind {
  readonly program: Parameters<typeof program>[0];
  /** The command that fills the folder, if any. */
  readonly init?: (place: Place) => readonly string[];
  readonly files?: (place: Place) => Record<string, string>;
  readonly args: (place: Place) => readonly string[];
  /** A part of what it logs once it answers. */
  readonly ready: string;
}

/** A private database server on 127.0.0.1 with its own folder. */
export class DatabaseServer {
  readonly host: string = loopback;
  readonly port: number;
  readonly #kind: Kind;
  readonly #dir: string = mkdtempSync(join(tmpdir(), "floodgate-database-"));
  readonly #forgetExit: () => void;
  #process: ServerProcess | undefined;

  private constructor(kind: Kind, port: number) {
    this.port = port;
    this.#kind = kind;
    this.#forgetExit = atExit(() => this.#remove());
    if (isRoot) chownSync(this.#dir, nobody, nobody);
    for (const [name, text] of Object.entries(kind.files?.(this.#place) ?? {})) writeFileSync(join(this.#dir, name), text);
    const [command, ...args] = [...asUser, ...(kind.init?.(this.#place) ?? [])];
    if (kind.init !== undefined) execFileSync(command as string, args, { stdio: "pipe", cwd: this.#dir });
  }

  /** @throws Error with the end of its log if it does not start. */
  static async start(kind: Kind): Promise<DatabaseServer> {
    const server = new DatabaseServer(kind, await sparePort());
    try {
      await server.restart();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  get #place(): Place {
    return { dir: this.#dir, port: this.port };
  }

  get #log(): string {
    return join(this.#dir, "log");
  }

  /** Kills the server like a crash (SIGKILL). `restart` brings it back with what it had on disk. */
  async kill(): Promise<void> {
    await this.#process?.kill();
  }

  /** Makes the server hang (SIGSTOP) until `resume`. */
  pause(): void {
    this.#process?.signal("SIGSTOP");
  }

  resume(): void {
    this.#process?.signal("SIGCONT");
  }

  async restart(): Promise<void> {
    await this.kill();
    writeFileSync(this.#log, "");
    const command = [...asUser, program(this.#kind.program), ...this.#kind.args(this.#place)];
    const running = new ServerProcess(command[0] as string, command.slice(1), this.#log);
    this.#process = running;
    const log = (): string => readFileSync(this.#log, "utf8");
    await until(`${this.#kind.program} answers`, async () => !running.running || log().includes(this.#kind.ready));
    if (!running.running) throw new Error(`${this.#kind.program} ended. Its log ends with:\n${log().slice(-2000)}`);
  }

  async stop(): Promise<void> {
    await this.kill();
    this.#forgetExit();
    this.#remove();
  }

  /** Synchronous, for use at exit. */
  #remove(): void {
    this.#process?.signal("SIGKILL");
    rmSync(this.#dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A Postgres without a password: user and database are `postgres`. What it wrote outlives its process, but not the machine's. */
export function startPostgres(): Promise<DatabaseServer> {
  return DatabaseServer.start({
    program: "postgres",
    init: ({ dir }) => [program("initdb"), "--no-sync", "--username=postgres", "--auth=trust", `${dir}/data`],
    args: ({ dir, port }) => [
      "-D",
      `${dir}/data`,
      "-p",
      `${port}`,
      "-h",
      loopback,
      "-k",
      dir,
      "-c",
      "max_connections=200",
      "-c",
      "fsync=off",
    ],
    ready: "ready to accept connections",
  });
}

/** An etcd of one member. What it wrote outlives its process, but not the machine's. */
export async function startEtcd(): Promise<DatabaseServer> {
  const peer = `http://${loopback}:${await sparePort()}`;
  return DatabaseServer.start({
    program: "etcd",
    args: ({ dir, port }) => [
      `--data-dir=${dir}/data`,
      `--listen-client-urls=http://${loopback}:${port}`,
      `--advertise-client-urls=http://${loopback}:${port}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      "--unsafe-no-fsync",
    ],
    ready: "ready to serve client requests",
  });
}

/** PgBouncer in transaction mode in front of a Postgres. */
export function startPgBouncer(postgres: DatabaseServer): Promise<DatabaseServer> {
  return DatabaseServer.start({
    program: "pgbouncer",
    files: ({ port }) => ({
      "pgbouncer.ini": `[databases]
postgres = host=${loopback} port=${postgres.port} user=postgres
[pgbouncer]
listen_addr = ${loopback}
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
`,
    }),
    args: ({ dir }) => [`${dir}/pgbouncer.ini`],
    ready: "process up",
  });
}

/** A MariaDB with the user `root` without a password, and the database `test`. */
export function startMariadb(): Promise<DatabaseServer> {
  return DatabaseServer.start({
    program: "mariadbd",
    init: ({ dir }) => [
      ...[program("mariadb-install-db"), "--no-defaults", `--datadir=${dir}/data`, "--auth-root-authentication-method=normal"],
      ...["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"],
    ],
    args: ({ dir, port }) => [
      ...["--no-defaults", `--datadir=${dir}/data`, `--socket=${dir}/socket`, `--port=${port}`, `--bind-address=${loopback}`],
      ...["--skip-name-resolve", "--max-connections=300"],
    ],
    ready: "ready for connections",
  });
}
