import { execFileSync } from "node:child_process";
import { chownSync } from "node:fs";
import { loopback, sparePort } from "./port.js";
import { PrivateServer, type ServerKind, type ServerPlace, startOnSparePort } from "./private-server.js";
import { mysqlServer, program } from "./programs.js";

/** Databases do not run as root. As root they get this user: nobody. */
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const asUser: readonly string[] = isRoot
  ? ["/usr/bin/setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups", "--pdeathsig=KILL", "--"]
  : [];

/** A private database server. A restart brings it back with what it had on disk. */
export type DatabaseServer = PrivateServer;

interface Database extends Pick<ServerKind, "files"> {
  readonly name: string;
  readonly program: string;
  /** The command that fills the folder, if any. */
  readonly init?: (place: ServerPlace) => readonly string[];
  readonly args: (place: ServerPlace) => readonly string[];
  /** A part of what it logs once it answers. */
  readonly readyLog: string;
}

function startDatabase({ name, program, init, args, readyLog, ...files }: Database): Promise<DatabaseServer> {
  const kind: ServerKind = {
    ...files,
    name,
    prepare(place) {
      if (isRoot) chownSync(place.dir, nobody, nobody);
      if (init === undefined) return;
      const [command, ...words] = [...asUser, ...init(place)];
      execFileSync(command as string, words, { stdio: "pipe", cwd: place.dir });
    },
    command: (place) => [...asUser, program, ...args(place)],
    ready: async ({ log }) => log.includes(readyLog),
  };
  return startOnSparePort((port) => new PrivateServer(kind, port));
}

/** A Postgres without a password: user and database are `postgres`. What it wrote outlives its process, but not the machine's. */
export function startPostgres(): Promise<DatabaseServer> {
  return startDatabase({
    name: "postgres",
    program: program("postgres"),
    init: ({ dir }) => [program("initdb"), "--no-sync", "--username=postgres", "--auth=trust", `${dir}/data`],
    args: ({ dir, port }) => [
      ...["-D", `${dir}/data`, "-p", `${port}`, "-h", loopback, "-k", dir],
      ...["-c", "max_connections=200", "-c", "fsync=off"],
    ],
    readyLog: "ready to accept connections",
  });
}

/** An etcd of one member. What it wrote outlives its process, but not the machine's. */
export async function startEtcd(): Promise<DatabaseServer> {
  const peer = `http://${loopback}:${await sparePort()}`;
  return startDatabase({
    name: "etcd",
    program: program("etcd"),
    args: ({ dir, port }) => [
      `--data-dir=${dir}/data`,
      `--listen-client-urls=http://${loopback}:${port}`,
      `--advertise-client-urls=http://${loopback}:${port}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      "--unsafe-no-fsync",
    ],
    readyLog: "ready to serve client requests",
  });
}

/** PgBouncer in transaction mode in front of a Postgres. */
export function startPgBouncer(postgres: DatabaseServer): Promise<DatabaseServer> {
  return startDatabase({
    name: "pgbouncer",
    program: program("pgbouncer"),
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
    readyLog: "process up",
  });
}

/** A MariaDB with the user `root` without a password, and the database `test`. */
export function startMariadb(): Promise<DatabaseServer> {
  return startDatabase({
    name: "mariadbd",
    program: program("mariadbd"),
    init: ({ dir }) => [
      ...[program("mariadb-install-db"), "--no-defaults", `--datadir=${dir}/data`, "--auth-root-authentication-method=normal"],
      ...["--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"],
    ],
    args: ({ dir, port }) => [
      ...["--no-defaults", `--datadir=${dir}/data`, `--socket=${dir}/socket`, `--port=${port}`, `--bind-address=${loopback}`],
      ...["--skip-name-resolve", "--max-connections=300"],
    ],
    readyLog: "ready for connections",
  });
}

/** The same with MySQL. @throws Error if `mysqlServer` finds none. */
function startMysql(): Promise<DatabaseServer> {
  const mysqld = mysqlServer();
  if (mysqld === undefined) throw new Error("There is no mysqld here that is not a link to mariadbd.");
  return startDatabase({
    name: "mysqld",
    program: mysqld,
    files: () => ({ "init.sql": "CREATE DATABASE IF NOT EXISTS test;\n" }),
    init: ({ dir }) => [mysqld, "--no-defaults", `--datadir=${dir}/data`, "--initialize-insecure", "--innodb-flush-log-at-trx-commit=0"],
    args: ({ dir, port }) => [
      ...["--no-defaults", `--datadir=${dir}/data`, `--socket=${dir}/socket`, `--port=${port}`, `--bind-address=${loopback}`],
      ...["--mysqlx=OFF", "--secure-file-priv=NULL", "--max-connections=300", `--init-file=${dir}/init.sql`],
    ],
    readyLog: "ready for connections",
  });
}

/** MariaDB, and MySQL if it is installed, for tests that run on each. */
export function mysqlServers(): { name: "MariaDB" | "MySQL"; start: () => Promise<DatabaseServer> }[] {
  const mariadb = { name: "MariaDB" as const, start: startMariadb };
  return mysqlServer() === undefined ? [mariadb] : [mariadb, { name: "MySQL", start: startMysql }];
}
