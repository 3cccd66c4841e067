import { join } from "node:path";
import { askSocket, startWebServer, type WebServer, type WebServerKind, type WebServerOptions } from "./web-server.js";

/**
 * Starts a Caddy. The config is a Caddyfile without the global option `admin`: `({ port }) => "http://127.0.0.1:" + port + " { … }"`.
 * @throws Error with its log if it does not start.
 */
export function startCaddy(options: WebServerOptions): Promise<WebServer> {
  return startWebServer(kind, options);
}

const kind: WebServerKind = {
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
