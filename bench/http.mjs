import { Child } from "./lib/child.mjs";
import { median, progress, spread, table } from "./lib/report.mjs";

const servers = {
  nothing: "nothing",
  noop: "no-op that sets two headers",
  allowed: "floodgate, allowed",
  denied: "floodgate, denied",
  "express-rate-limit": "express-rate-limit, allowed",
};
const hosts = ["127.0.0.1", "::"];

export async function http({ rounds, seconds, connections }) {
  const tables = [];
  for (const host of hosts) {
    const results = Object.fromEntries(Object.keys(servers).map((kind) => [kind, { perSecond: [], cpuUs: [] }]));
    for (let round = 1; round <= rounds; round++) {
      progress(`http: on ${host}: round ${round} of ${rounds}`);
      for (const kind of Object.keys(servers)) {
        const { perSecond, cpuUs } = await measure(kind, host, seconds, connections);
        results[kind].perSecond.push(perSecond);
        results[kind].cpuUs.push(cpuUs);
      }
    }
    const ratio = (kind, to) => median(results[kind].perSecond.map((value, round) => value / results[to].perSecond[round])).toFixed(2);
    const added = (kind) => median(results[kind].cpuUs.map((value, round) => value - results.nothing.cpuUs[round])).toFixed(1);
    const rows = Object.entries(servers).map(([kind, label]) => [
      label,
      median(results[kind].perSecond).toFixed(0),
      ratio(kind, "nothing"),
      ratio(kind, "noop"),
      median(results[kind].cpuUs).toFixed(0),
      added(kind),
    ]);
    const noise = Math.max(...Object.values(results).map(({ perSecond }) => spread(perSecond)));
    tables.push(
      table(
        `Express 5 bound to ${host}, ${connections} connections, ${rounds} rounds of ${seconds} s, medians; ratios within each round (the noisiest server ±${(100 * noise).toFixed(0)} %)`,
        ["in front of the route", "requests/s", "to nothing", "to the no-op", "server CPU µs", "added"],
        rows,
      ),
    );
  }
  progress("");
  return tables.join("\n");
}

/** A fresh server and a fresh client: a process kept for all rounds favours whoever warmed it up. */
async function measure(kind, host, seconds, connections) {
  const server = new Child("http-server.mjs", [kind, host]);
  const client = new Child("http-client.mjs", []);
  try {
    const port = await server.ask("port");
    const load = { port, connections, status: kind === "denied" ? 429 : 200 };
    await client.ask({ ...load, seconds: 1 });
    const before = await server.ask("cpu");
    const { requests, elapsedMs } = await client.ask({ ...load, seconds });
    const after = await server.ask("cpu");
    return { perSecond: (requests * 1000) / elapsedMs, cpuUs: (after - before) / requests };
  } finally {
    await Promise.all([server.stop(), client.stop()]);
  }
}
