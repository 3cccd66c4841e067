import { once } from "node:events";
import { existsSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { PrivateServer, type ServerKind, type ServerPlace, startOnSparePort } from "./private-server.js";
import { program } from "./programs.js";

export interface WebServerOptions {
  /** Writes the config: ``({ port }) => `server { listen 127.0.0.1:${port}; }` ``. It is called again if the port was taken. */
  config: (place: ServerPlace) => string;
  /** More files for the server's folder, such as scripts: name to text. */
  files?: Readonly<Record<string, string>>;
}

/** A private server of HTTP. */
export type WebServer = PrivateServer;

/** @param configFile the name of the file that has the config of the options. */
function startWebServer(configFile: string, { config, files }: WebServerOptions, kind: ServerKind): Promise<WebServer> {
  const all: ServerKind = {
    ...kind,
    files: (place) => ({ ...files, ...kind.files?.(place), [configFile]: `${config(place)}\n` }),
  };
  return startOnSparePort((port) => new PrivateServer(all, port));
}

/**
 * Starts an nginx. The config is what stands in `http { … }`: `({ port }) => "server { listen 127.0.0.1:" + port + "; … }"`.
 * @throws Error with its log if it does not start.
 */
export function startNginx(options: WebServerOptions): Promise<WebServer> {
  return startWebServer("http.conf", options, {
    name: "nginx",
    command: ({ dir }) => [program("nginx"), "-p", dir, "-c", join(dir, "nginx.conf"), "-e", "stderr"],
    files: (place) => ({ "nginx.conf": nginxConfig(place) }),
    // It listens on all addresses before it answers on one.
    ready: async ({ dir }) => (await askSocket(join(dir, "ready.sock"))) !== undefined,
    // The master stops its workers.
    endSignal: "SIGTERM",
  });
}

/** Everything that would be in a system folder is in its own one. */
function nginxConfig({ dir }: ServerPlace): string {
  const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return `daemon off;
worker_processes 2;
pid ${dir}/nginx.pid;
error_log stderr warn;
events {
  worker_connections 4096;
}
http {
  access_log off;
  ${kinds.map((name) => `${name}_temp_path ${dir}/${name};`).join("\n  ")}
  server {
    listen unix:${dir}/ready.sock;
    return 200;
  }
  include ${dir}/http.conf;
}
`;
}

/**
 * Starts a Caddy. The config is a Caddyfile without the global option `admin`: `({ port }) => "http://127.0.0.1:" + port + " { … }"`.
 * @throws Error with its log if it does not start.
 */
export function startCaddy({ config, ...options }: WebServerOptions): Promise<WebServer> {
  const withAdminSocket = (place: ServerPlace): string =>
    withAdmin(`admin unix/${place.dir}/admin.sock {\n\t\torigins localhost\n\t}`, config(place));
  return startWebServer(
    "Caddyfile",
    { ...options, config: withAdminSocket },
    {
      name: "Caddy",
      command: ({ dir }) => [program("caddy"), "run", "--adapter", "caddyfile", "--config", join(dir, "Caddyfile")],
      // Its certificates and saved configs.
      env: ({ dir }) => ({ HOME: dir, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir }),
      // The config is null until it is in force.
      ready: async ({ dir }) => JSON.parse((await askSocket(join(dir, "admin.sock"), "/config/")) ?? "null") !== null,
    },
  );
}

/** Adds a global option to those that the config may begin with. */
function withAdmin(option: string, config: string): string {
  return /^\{$/m.test(config) ? config.replace(/^\{$/m, `{\n\t${option}`) : `{\n\t${option}\n}\n${config}`;
}

/**
 * Starts an HAProxy. The config is a whole haproxy.cfg: `({ port }) => "frontend web\n bind 127.0.0.1:" + port + " …"`.
 * @throws Error with its log if it does not start.
 */
export function startHaproxy(options: WebServerOptions): Promise<WebServer> {
  return startWebServer("haproxy.cfg", options, {
    name: "HAProxy",
    // One process in the foreground.
    command: ({ dir }) => [program("haproxy"), "-db", "-f", join(dir, "base.cfg"), "-f", join(dir, "haproxy.cfg")],
    files: (place) => ({ "base.cfg": haproxyConfig(place) }),
    // It listens on all addresses before it answers on one.
    ready: async ({ dir }) => (await askSocket(join(dir, "ready.sock"))) !== undefined,
  });
}

/** HAProxy would share a port with another HAProxy without `noreuseport`. */
function haproxyConfig({ dir }: ServerPlace): string {
  return `global
  noreuseport
frontend ready
  mode http
  timeout client 5s
  bind unix@${dir}/ready.sock
  http-request return status 200
`;
}

export interface ApacheOptions extends WebServerOptions {
  /** Modules by the names that Debian's `a2enmod` takes: `["proxy", "proxy_http"]`. The MPM and those of a plain site are there. */
  modules?: readonly string[];
}

/**
 * Starts an Apache that listens on the port. The config is a site: `({ port }) => "<VirtualHost *:" + port + "> … </VirtualHost>"`.
 * @throws Error with its log if it does not start.
 */
export function startApache({ modules = [], ...options }: ApacheOptions): Promise<WebServer> {
  return startWebServer("site.conf", options, {
    name: "Apache",
    command: ({ dir }) => [program("apache2"), "-DFOREGROUND", "-d", dir, "-f", join(dir, "apache2.conf")],
    files: (place) => ({ "apache2.conf": apacheConfig(place, modules) }),
    // It writes the file once it listens.
    ready: async ({ port, dir }) => existsSync(join(dir, "apache2.pid")) && (await connects(port)),
    // The parent stops its workers.
    endSignal: "SIGTERM",
  });
}

/** Where Debian's apache2-bin has its modules. */
const moduleFolder = "/usr/lib/apache2/modules";

function apacheConfig({ port, dir }: ServerPlace, modules: readonly string[]): string {
  const all = ["mpm_event", "authz_core", "reqtimeout", "mime", ...modules];
  return `${all.map((name) => `LoadModule ${name}_module ${moduleFolder}/mod_${name}.so`).join("\n")}
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
PidFile ${dir}/apache2.pid
DefaultRuntimeDir ${dir}
Mutex file:${dir}
ErrorLog /dev/stderr
TypesConfig /etc/mime.types
${process.getuid?.() === 0 ? "User www-data\nGroup www-data" : ""}
Include ${dir}/site.conf
`;
}

async function connects(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
  return true;
}

/** The body of a 200 answer on a Unix socket; undefined for another status. */
function askSocket(socketPath: string, path = "/"): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, agent: false }, (res) => {
      text(res).then((body) => resolve(res.statusCode === 200 ? body : undefined), reject);
    });
    asked.on("error", reject).end();
  });
}
