import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The names of each program, and the Debian package that has it. `npm test` installs these packages, see `test/announce.mjs`. */
const programs = {
  // The tools package contains the server too, as a checker, and starts no service when installed. The program behaves as server or
  // checker by the name that it is run under.
  "redis-server": { names: ["redis-server", "redis-check-rdb"], apt: "redis-tools" },
  "valkey-server": { names: ["valkey-server", "valkey-check-rdb"], apt: "valkey-tools" },
  prometheus: { names: ["prometheus"], apt: "prometheus" },
  promtool: { names: ["promtool"], apt: "prometheus" },
  nginx: { names: ["nginx"], apt: "nginx" },
  caddy: { names: ["caddy"], apt: "caddy" },
  haproxy: { names: ["haproxy"], apt: "haproxy" },
  apache2: { names: ["apache2"], apt: "apache2-bin" },
  chromium: { names: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"], apt: "chromium" },
  postgres: { names: ["postgres"], apt: "postgresql" },
  initdb: { names: ["initdb"], apt: "postgresql" },
  pgbouncer: { names: ["pgbouncer"], apt: "pgbouncer" },
  etcd: { names: ["etcd"], apt: "etcd-server" },
  mariadbd: { names: ["mariadbd"], apt: "mariadb-server" },
  "mariadb-install-db": { names: ["mariadb-install-db"], apt: "mariadb-server" },
} as const;

/** Servers are there, and a user's PATH may lack it. */
const serverFolders: readonly string[] = ["/usr/local/sbin", "/usr/sbin", ...versionsOfPostgres()];

/** Debian keeps each version of Postgres in a folder of its own. */
function versionsOfPostgres(): string[] {
  const folder = "/usr/lib/postgresql";
  return existsSync(folder) ? readdirSync(folder).map((version) => join(folder, version, "bin")) : [];
}

function find(names: readonly string[]): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), ...serverFolders];
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find((file) => existsSync(file));
}

/**
 * The path of a program that this package runs.
 * @throws Error that says what to install.
 */
export function program(name: keyof typeof programs): string {
  const { names, apt } = programs[name];
  const found = find(names);
  if (found === undefined) throw new Error(`There is no ${name} on the PATH. Install it: apt-get install ${apt}.`);
  return found;
}

/** The path of valkey-server, for `startRedis({ binary })`. Undefined, with a warning, if it is not installed. */
export function valkeyServer(): string | undefined {
  const found = find(programs["valkey-server"].names);
  if (found === undefined) process.emitWarning("There is no valkey-server on the PATH: what needs it is left out.");
  return found;
}

/** redis-server, and valkey-server if it is installed, for tests that run on each. */
export function availableServers(): { name: "Redis" | "Valkey"; binary: string }[] {
  const binary = valkeyServer();
  return [{ name: "Redis", binary: program("redis-server") }, ...(binary === undefined ? [] : [{ name: "Valkey" as const, binary }])];
}

/** Apache runs Lua 5.3. */
const luaFiles: readonly string[] = ["/usr/share/lua/5.3/socket.lua", "/usr/local/share/lua/5.3/socket.lua"];

/** @throws Error if the library LuaSocket, for scripts of Apache's mod_lua, is missing. */
export function needLuaSocket(): void {
  if (!luaFiles.some((file) => existsSync(file))) throw new Error("There is no LuaSocket here. Install it: apt-get install lua-socket.");
}
