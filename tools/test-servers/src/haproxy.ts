import { join } from "node:path";
import { askSocket, startWebServer, type WebServer, type WebServerKind, type WebServerOptions, type WebServerPlace } from "./web-server.js";

/**
 * Starts an HAProxy. The config is a whole haproxy.cfg: `({ port }) => "frontend web\n bind 127.0.0.1:" + port + " …"`.
 * @throws Error with its log if it does not start.
 */
export function startHaproxy(options: WebServerOptions): Promise<WebServer> {
  return startWebServer(kind, options);
}

const kind: WebServerKind = {
  name: "HAProxy",
  program: "haproxy",
  // One process in the foreground.
  args: ({ dir }) => ["-db", "-f", join(dir, "base.cfg"), "-f", join(dir, "haproxy.cfg")],
  files: (place, config) => ({ "base.cfg": base(place), "haproxy.cfg": `${config}\n` }),
  // It listens on all addresses before it answers on one.
  ready: async ({ dir }) => (await askSocket(join(dir, "ready.sock"))) !== undefined,
};

/** HAProxy would share a port with another HAProxy without `noreuseport`. */
function base({ dir }: WebServerPlace): string {
  return `global
  noreuseport
frontend ready
  mode http
  timeout client 5s
  bind unix@${dir}/ready.sock
  http-request return status 200
`;
}
