import { join } from "node:path";
import { askSocket, startWebServer, type WebServer, type WebServerKind, type WebServerOptions, type WebServerPlace } from "./web-server.js";

/**
 * Starts an nginx. The config is what stands in `http { … }`: `({ port }) => "server { listen 127.0.0.1:" + port + "; … }"`.
 * @throws Error with its log if it does not start.
 */
export function startNginx(options: WebServerOptions): Promise<WebServer> {
  return startWebServer(kind, options);
}

const kind: WebServerKind = {
  name: "nginx",
  program: "nginx",
  args: ({ dir }) => ["-p", dir, "-c", join(dir, "nginx.conf"), "-e", "stderr"],
  files: (place, config) => ({ "nginx.conf": main(place), "http.conf": `${config}\n` }),
  // It listens on all addresses before it answers on one.
  ready: async ({ dir }) => (await askSocket(join(dir, "ready.sock"))) !== undefined,
  // The master stops its workers.
  endSignal: "SIGTERM",
};

/** Everything that would be in a system folder is in its own one. */
function main({ dir }: WebServerPlace): string {
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
