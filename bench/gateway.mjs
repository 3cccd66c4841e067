import { readFileSync } from "node:fs";
import { startNginx } from "@floodgate/test-servers";
import { measureServers, serverOf, serverTable } from "./lib/servers.mjs";

/** Each group is compared with its first. */
const groups = [
  {
    label: "Reverse proxies, one limit by address",
    path: "/",
    kinds: { httpxy: "httpxy alone", gateway: "floodgate gateway", nginx: "nginx limit_req + proxy_pass, 2 workers" },
  },
  {
    label: "Decision server, one limit by address",
    path: "/ask/generic",
    kinds: {
      "no-op http": "a no-op server of node:http, the same headers",
      "bare http": "a no-op server of node:http, no headers",
      ask: "floodgate serve",
    },
  },
  {
    label: "Envoy's rate limit service, one descriptor, one limit",
    isGrpc: true,
    kinds: { "no-op grpc": "a no-op server of @grpc/grpc-js", rls: "floodgate serve --rls" },
  },
];

const sliceSeconds = 0.5;

export async function gateway({ rounds = 5, seconds = 4, connections }) {
  const upstream = serverOf("upstream");
  try {
    const target = `http://127.0.0.1:${await upstream.port()}`;
    const tables = [];
    for (const { label, kinds, isGrpc, path } of groups) {
      const all = Object.keys(kinds).map((kind) => {
        return [kind, { start: () => (kind === "nginx" ? nginx(target) : serverOf(kind, target)), load: { isGrpc, path, connections } }];
      });
      const results = await measureServers(`gateway: ${label}`, Object.fromEntries(all), { rounds, seconds, sliceSeconds });
      const heading = `${label}, ${connections} connections, ${rounds} rounds of ${seconds} s in slices of ${sliceSeconds} s`;
      tables.push(serverTable(heading, kinds, results, { [Object.keys(kinds)[0]]: "ratio" }));
    }
    return tables.join("\n");
  } finally {
    await upstream.stop();
  }
}

async function nginx(target) {
  const { host } = new URL(target);
  const server = await startNginx({
    config: ({ port }) => `
      limit_req_zone $binary_remote_addr zone=one:10m rate=100000000r/s;
      upstream app { server ${host}; keepalive 256; }
      server {
        listen 127.0.0.1:${port};
        access_log off;
        keepalive_requests 100000000;
        location / {
          limit_req zone=one burst=1000000 nodelay;
          limit_req_status 429;
          proxy_pass http://app;
          proxy_http_version 1.1;
          proxy_set_header Connection "";
          proxy_set_header X-Forwarded-For $remote_addr;
        }
      }`,
  });
  // The master and its workers.
  const pids = [server.pid, ...readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, "utf8").trim().split(" ")];
  return { port: () => server.port, cpuUs: () => pids.reduce((sum, pid) => sum + cpuUsOf(pid), 0), stop: () => server.stop() };
}

/** Linux counts hundredths of a second. */
function cpuUsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}
