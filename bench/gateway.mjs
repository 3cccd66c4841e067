import { readdirSync, readFileSync } from "node:fs";
import { startNginx } from "@floodgate/test-servers";
import { Child } from "./lib/child.mjs";
import { median, progress, spread, table } from "./lib/report.mjs";

/** Each group is compared with its first. */
const groups = [
  {
    label: "Reverse proxies, one limit by address",
    protocol: "http",
    path: "/",
    kinds: { httpxy: "httpxy alone", gateway: "floodgate gateway", nginx: "nginx limit_req + proxy_pass, 2 workers" },
  },
  {
    label: "Decision server, one limit by address",
    protocol: "http",
    path: "/ask/generic",
    kinds: {
      "no-op http": "a no-op server of node:http, the same headers",
      "bare http": "a no-op server of node:http, no headers",
      ask: "floodgate serve",
    },
  },
  {
    label: "Envoy's rate limit service, one descriptor, one limit",
    protocol: "grpc",
    kinds: { "no-op grpc": "a no-op server of @grpc/grpc-js", rls: "floodgate serve --rls" },
  },
];

const warmUpSeconds = 1;
const sliceSeconds = 0.5;

export async function gateway({ rounds, seconds, connections }) {
  const upstream = new Child("gateway-server.mjs", ["upstream"]);
  try {
    const target = `http://127.0.0.1:${await upstream.ask("port")}`;
    const tables = [];
    for (const group of groups) {
      const results = Object.fromEntries(Object.keys(group.kinds).map((kind) => [kind, { perSecond: [], p99Ms: [], cpuUs: [] }]));
      for (let round = 1; round <= rounds; round++) {
        progress(`gateway: ${group.label}: round ${round} of ${rounds}`);
        await measure(group, results, { target, seconds, connections });
      }
      tables.push(tableOf(group, results, `${connections} connections, ${rounds} rounds of ${seconds} s in slices of ${sliceSeconds} s`));
    }
    progress("");
    return tables.join("\n");
  } finally {
    await upstream.stop();
  }
}

/** Fresh servers in each round, which take turns in slices, so that other load on the machine affects all equally. */
async function measure({ kinds, protocol, path }, results, { target, seconds, connections }) {
  const pairs = [];
  try {
    for (const kind of Object.keys(kinds)) {
      const server = kind === "nginx" ? await nginx(target) : child(kind, target);
      const client = new Child("gateway-client.mjs", []);
      pairs.push({ kind, server, client });
    }
    for (const pair of pairs) {
      pair.load = { protocol, path, connections, port: await pair.server.port() };
      await pair.client.ask({ ...pair.load, seconds: warmUpSeconds });
    }
    for (let slice = 0; slice * sliceSeconds < seconds; slice++) {
      for (const { kind, server, client, load } of pairs) {
        const beforeUs = await server.cpuUs();
        const { requests, elapsedMs, p99Ms } = await client.ask({ ...load, seconds: sliceSeconds });
        const afterUs = await server.cpuUs();
        results[kind].perSecond.push((requests * 1000) / elapsedMs);
        results[kind].p99Ms.push(p99Ms);
        results[kind].cpuUs.push((afterUs - beforeUs) / requests);
      }
    }
  } finally {
    await Promise.all(pairs.flatMap(({ server, client }) => [server.stop(), client.stop()]));
  }
}

function child(kind, target) {
  const process = new Child("gateway-server.mjs", [kind, target]);
  return { port: () => process.ask("port"), cpuUs: () => process.ask("cpu"), stop: () => process.stop() };
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
  const pids = workersOn(server.dir);
  return { port: () => server.port, cpuUs: () => pids.reduce((sum, pid) => sum + cpuUsOf(pid), 0), stop: () => server.stop() };
}

/** The master whose arguments name this folder, and its workers. */
function workersOn(dir) {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const read = (pid, file) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "utf8");
    } catch {
      return "";
    }
  };
  const masters = all.filter((pid) => read(pid, "cmdline").includes(dir));
  const parentOf = (pid) =>
    read(pid, "stat")
      .replace(/^.*\) /s, "")
      .split(" ")[1];
  return all.filter((pid) => masters.includes(pid) || masters.includes(parentOf(pid)));
}

/** Linux counts hundredths of a second. */
function cpuUsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

function tableOf({ label, kinds }, results, heading) {
  const [first] = Object.keys(kinds);
  const ratios = (kind) => results[kind].perSecond.map((value, slice) => value / results[first].perSecond[slice]);
  const rows = Object.entries(kinds).map(([kind, name]) => [
    name,
    median(results[kind].perSecond).toFixed(0),
    median(ratios(kind)).toFixed(2),
    median(results[kind].p99Ms).toFixed(1),
    median(results[kind].cpuUs).toFixed(0),
  ]);
  const noise = Math.max(...Object.keys(kinds).map((kind) => spread(ratios(kind))));
  return table(
    `${label}, ${heading}: medians, and ratios between neighbouring slices (the noisiest ±${(100 * noise).toFixed(0)} %)`,
    ["", "requests/s", "ratio", "p99 ms", "server CPU µs"],
    rows,
  );
}
