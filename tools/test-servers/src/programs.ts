import { existsSync, readdirSync, realpathSync } from "node:fs";
import { basename, delimiter, join, resolve } from "node:path";
/**
 * The names of each program, and the Debian package that has it. `npm test` installs these packages, see `test/announce.mjs`.
 * Debian's tools packages of Redis and Valkey contain the server too, as a checker, and start no service when installed: the program
 * behaves as server or checker by the name that it is run under. LuaSocket is a library, for scripts of Apache, which runs Lua 5.3.
 */
import programs from "./programs.json";

/** Servers are there, and a user's PATH may lack it. */
const serverFolders: readonly string[] = ["/usr/local/sbin", "/usr/sbin", ...versionsOfPostgres()];

/** Debian keeps each version of Postgres in a folder of its own. */
function versionsOfPostgres(): string[] {
  const folder = "/usr/lib/postgresql";
  return existsSync(folder) ? readdirSync(folder).map((version) => join(folder, version, "bin")) : [];
}

const find = (names: readonly string[]): string | undefined => findAll(names)[0];

function findAll(names: readonly string[]): string[] {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...serverFolders];
  return names.flatMap((name) => folders.map((folder) => resolve(folder, name))).filter((file) => existsSync(file));
}

/**
 * The path of a program or library that the tests use.
 * @throws Error that says what to install.
 */
export function program(name: keyof typeof programs): string {
  const { names, debian } = programs[name];
  const found = find(names);
  if (found === undefined) throw new Error(`There is no ${name} here. Install it: apt-get install ${debian}.`);
  return found;
}

/** The path of valkey-server, for `startRedis({ binary })`. Undefined if it is not installed: `npm test` says that what needs it is left out. */
export function valkeyServer(): string | undefined {
  return find(programs["valkey-server"].names);
}

/** The path of MySQL's server, which Debian has only in its unstable version. Undefined if there is none: MariaDB has a link of that name. */
export function mysqlServer(): string | undefined {
  return findAll(["mysqld"]).find((file) => basename(realpathSync(file)) === "mysqld");
}

/** redis-server, and valkey-server if it is installed, for tests that run on each. */
export function availableServers(): { name: "Redis" | "Valkey"; binary: string }[] {
  const binary = valkeyServer();
  return [{ name: "Redis", binary: program("redis-server") }, ...(binary === undefined ? [] : [{ name: "Valkey" as const, binary }])];
}
