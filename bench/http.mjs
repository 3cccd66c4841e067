import { Child } from "./lib/child.mjs";
import { median, progress, spread, table } from "./lib/report.mjs";

/** By the name of the file that starts their servers. */
export const frameworks = {
  express: { label: "Express 5", peer: "express-rate-limit" },
  koa: { label: "Koa 3", peer: "koa-ratelimit" },
  hono: { label: "Hono 4", peer: "hono-rate-limiter" },
};

const kinds = ["nothing", "noop", "allowed", "denied", "peer"];

export async function http({ rounds, seconds, connections, host, framework }) {
  const chosen = framework ?? Object.keys(frameworks);
  const results = Object.fromEntries(
    chosen.map((name) => [name, Object.fromEntries(kinds.map((kind) => [kind, { perSecond: [], cpuUs: [] }]))]),
  );
  for (let round = 1; round <= rounds; round++) {
    for (const name of chosen) {
      progress(`http: ${frameworks[name].label} on ${host}: round ${round} of ${rounds}`);
      for (const kind of kinds) {
        const { perSecond, cpuUs } = await measure(name, kind, host, seconds, connections);
        results[name][kind].perSecond.push(perSecond);
        results[name][kind].cpuUs.push(cpuUs);
      }
    }
  }
  progress("");
  const heading = `${connections} connections on ${host}, ${rounds} rounds of ${seconds} s, medians; ratios within each round`;
  return chosen.map((name) => tableOf(name, results[name], heading)).join("\n");
}

function tableOf(name, of, heading) {
  const { label, peer } = frameworks[name];
  const within = (kind, to, measured) => of[kind][measured].map((value, round) => value / of[to][measured][round]);
  const labels = {
    nothing: "nothing",
    noop: "no-op that sets two headers",
    allowed: "floodgate, allowed",
    denied: "floodgate, denied",
    peer: `${peer}, allowed`,
  };
  const rows = kinds.map((kind) => [
    labels[kind],
    median(of[kind].perSecond).toFixed(0),
    median(within(kind, "nothing", "perSecond")).toFixed(2),
    median(within(kind, "noop", "perSecond")).toFixed(2),
    median(of[kind].cpuUs).toFixed(1),
    median(of[kind].cpuUs.map((value, round) => value - of.nothing.cpuUs[round])).toFixed(1),
  ]);
  const noise = Math.max(...kinds.map((kind) => spread(of[kind].perSecond)));
  return table(
    `${label}, ${heading} (the noisiest server ±${(100 * noise).toFixed(0)} %)`,
    ["in front of the route", "requests/s", "to nothing", "to the no-op", "server CPU µs", "added"],
    rows,
  );
}

/** A fresh server and a fresh client: a process kept for all rounds favours whoever warmed it up. */
async function measure(framework, kind, host, seconds, connections) {
  const server = new Child("http-server.mjs", [framework, kind, host]);
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
