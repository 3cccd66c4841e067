import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { askSocket, startWebServer, type WebServer, type WebServerKind, type WebServerOptions, type WebServerPlace } from "./web-server.js";

/**
 * Starts an nginx. The config is what stands in `http { … }`: `({ port }) => "server { listen 127.0.0.1:" + port + "; … }"`.
 * @throws Error with its log if it does not start.
 */
export function startNginx(options: WebServerOptions): Promise<WebServer> {
  return startWebServer(nginx, options);
}

const nginx: WebServerKind = {
  name: "nginx",
  program: "nginx",
  args: ({ dir }) => ["-p", dir, "-c", join(dir, "nginx.conf"), "-e", "stderr"],
  files: (place, config) => ({ "nginx.conf": nginxConfig(place), "http.conf": `${config}\n` }),
  // It listens on all addresses before it answers on one.
  ready: async ({ dir }) => (await askSocket(join(dir, "ready.sock"))) !== undefined,
  // The master stops its workers.
  endSignal: "SIGTERM",
};

/** Everything that would be in a system folder is in its own one. */
function nginxConfig({ dir }: WebServerPlace): string {
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
export function startCaddy(options: WebServerOptions): Promise<WebServer> {
  return startWebServer(caddy, options);
}

const caddy: WebServerKind = {
  name: "Caddy",
  program: "caddy",
  args: ({ dir }) => ["run", "--adapter", "caddyfile", "--config", join(dir, "Caddyfile")],
  files: ({ dir }, config) => ({ Caddyfile: withAdmin(`admin unix/${dir}/admin.sock {\n\t\torigins localhost\n\t}`, `${config}\n`) }),
  // Its certificates and saved configs.
  env: ({ dir }) => ({ HOME: dir, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir }),
  // The config is null until it is in force.
  ready: async ({ dir }) => JSON.parse((await askSocket(join(dir, "admin.sock"), "/config/")) ?? "null") !== null,
};

/** Adds a global option to those that the config may begin with. */
function withAdmin(option: string, config: string): string {
  return /^\{$/m.test(config) ? config.replace(/^\{$/m, `{\n\t${option}`) : `{\n\t${option}\n}\n${config}`;
}

/**
 * Starts an HAProxy. The config is a whole haproxy.cfg: `({ port }) => "frontend web\n bind 127.0.0.1:" + port + " …"`.
 * @throws Error with its log if it does not start.
 */
export function startHaproxy(options: WebServerOptions): Promise<WebServer> {
  return startWebServer(haproxy, options);
}

const haproxy: WebServerKind = {
  name: "HAProxy",
  program: "haproxy",
  // One process in the foreground.
  args: ({ dir }) => ["-db", "-f", join(dir, "base.cfg"), "-f", join(dir, "haproxy.cfg")],
  files: (place, config) => ({ "base.cfg": haproxyConfig(place), "haproxy.cfg": `${config}\n` }),
  // It listens on all addresses before it answers on one.
  ready: async ({ dir }) => (await askSocket(join(dir, "ready.sock"))) !== undefined,
};

/** HAProxy would share a port with another HAProxy without `noreuseport`. */
function haproxyConfig({ dir }: WebServerPlace): string {
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
  return startWebServer(
    { ...apache, files: (place, config) => ({ "apache2.conf": apacheConfig(place, modules), "site.conf": `${config}\n` }) },
    options,
  );
}

const apache: Omit<WebServerKind, "files"> = {
  name: "Apache",
  program: "apache2",
  args: ({ dir }) => ["-DFOREGROUND", "-d", dir, "-f", join(dir, "apache2.conf")],
  // It writes the file once it listens.
  ready: async ({ port, dir }) => existsSync(join(dir, "apache2.pid")) && (await connects(port)),
  // The parent stops its workers.
  endSignal: "SIGTERM",
};

/** Where Debian's apache2-bin has its modules. */
const moduleFolder = "/usr/lib/apache2/modules";

function apacheConfig({ port, dir }: WebServerPlace, modules: readonly string[]): string {
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

function connects(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}
