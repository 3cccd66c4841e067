import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { startWebServer, type WebServer, type WebServerKind, type WebServerOptions, type WebServerPlace } from "./web-server.js";

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
    { ...kind, files: (place, config) => ({ "apache2.conf": main(place, modules), "site.conf": `${config}\n` }) },
    options,
  );
}

const kind: Omit<WebServerKind, "files"> = {
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

function main({ port, dir }: WebServerPlace, modules: readonly string[]): string {
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
