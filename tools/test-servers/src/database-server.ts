import { execFileSync } from "node:child_process";
import { chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loopback, sparePort } from "./port.js";
import { PrivateServer, started } from "./private-server.js";
import { program } from "./programs.js";

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

/** A private database server. A restart brings it back with what it had on disk. */
export class DatabaseServer extends PrivateServer {
  readonly #kind: Kind;

  constructor(kind: Kind, port: number) {
    super("Database", port);
    this.#kind = kind;
    if (isRoot) chownSync(this.dir, nobody, nobody);
    for (const [name, text] of Object.entries(kind.files?.(this) ?? {})) writeFileSync(join(this.dir, name), text);
    const [command, ...args] = [...asUser, ...(kind.init?.(this) ?? [])];
    if (kind.init !== undefined) execFileSync(command as string, args, { stdio: "pipe", cwd: this.dir });
  }

  override start(): Promise<void> {
    const command = [...asUser, program(this.#kind.program), ...this.#kind.args(this)];
    return this.run(command, async () => this.log.includes(this.#kind.ready));
  }
}

function startDatabase(kind: Kind): Promise<DatabaseServer> {
  return started((port) => new DatabaseServer(kind, port));
}

/** A Postgres without a password: user and database are `postgres`. What it wrote outlives its process, but not the machine's. */
export function startPostgres(): Promise<DatabaseServer> {
  return startDatabase({
    program: "postgres",
    init: ({ dir }) => [program("initdb"), "--no-sync", "--username=postgres", "--auth=trust", `${dir}/data`],
    args: ({ dir, port }) => [
      ...["-D", `${dir}/data`, "-p", `${port}`, "-h", loopback, "-k", dir],
      ...["-c", "max_connections=200", "-c", "fsync=off"],
    ],
    ready: "ready to accept connections",
  });
}

/** An etcd of one member. What it wrote outlives its process, but not the machine's. */
export async function startEtcd(): Promise<DatabaseServer> {
  const peer = `http://${loopback}:${await sparePort()}`;
  return startDatabase({
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
  return startDatabase({
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
  return startDatabase({
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
