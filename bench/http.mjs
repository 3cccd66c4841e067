import { Child } from "./lib/child.mjs";
import { median, progress, spread, table } from "./lib/report.mjs";

/** By the name of the file that starts their servers. */
export const frameworks = {
  express: { label: "Express 5", peer: "express-rate-limit" },
  koa: { label: "Koa 3", peer: "koa-ratelimit" },
  hono: { label: "Hono 4", peer: "hono-rate-limiter" },
};

const kinds = ["nothing", "noop", "allowed", "denied", "peer allowed"];
const warmUpSeconds = 1;
const sliceSeconds = 0.25;

export async function http({ rounds, seconds, connections, host, framework }) {
  const chosen = framework ?? Object.keys(frameworks);
  const results = Object.fromEntries(
    chosen.map((name) => [name, Object.fromEntries(kinds.map((kind) => [kind, { perSecond: [], cpuUs: [] }]))]),
  );
  for (let round = 1; round <= rounds; round++) {
    for (const name of chosen) {
      progress(`http: ${frameworks[name].label} on ${host}: round ${round} of ${rounds}`);
      await measure(name, results[name], { host, seconds, connections });
    }
  }
  progress("");
  const heading = `${connections} connections on ${host}, ${rounds} rounds of ${seconds} s in slices of ${sliceSeconds} s`;
  return chosen.map((name) => tableOf(name, results[name], heading)).join("\n");
}

/**
 * Each round starts a fresh server and client for each kind, because a reused process favours the kind that warmed it up. They take turns
 * in slices, so that other load on the machine affects all equally.
 */
async function measure(framework, results, { host, seconds, connections }) {
  const pairs = kinds.map((kind) => ({
    kind,
    server: new Child("http-server.mjs", [framework, kind, host]),
    client: new Child("http-client.mjs", []),
  }));
  try {
    for (const pair of pairs) {
      pair.load = { port: await pair.server.ask("port"), connections, status: pair.kind === "denied" ? 429 : 200 };
      await pair.client.ask({ ...pair.load, seconds: warmUpSeconds });
    }
    for (let slice = 0; slice * sliceSeconds < seconds; slice++) {
      for (const { kind, server, client, load } of pairs) {
        const before = await server.ask("cpu");
        const { requests, elapsedMs } = await client.ask({ ...load, seconds: sliceSeconds });
        const after = await server.ask("cpu");
        results[kind].perSecond.push((requests * 1000) / elapsedMs);
        results[kind].cpuUs.push((after - before) / requests);
      }
    }
  } finally {
    await Promise.all(pairs.flatMap(({ server, client }) => [server.stop(), client.stop()]));
  }
}

function tableOf(name, results, heading) {
  const { label, peer } = frameworks[name];
  const labels = {
    nothing: "nothing",
    noop: "no-op that sets two headers",
    allowed: "floodgate, allowed",
    denied: "floodgate, denied",
    "peer allowed": `${peer}, allowed`,
  };
  const ratios = (kind, to) => results[kind].perSecond.map((value, slice) => value / results[to].perSecond[slice]);
  const rows = kinds.map((kind) => [
    labels[kind],
    median(results[kind].perSecond).toFixed(0),
    median(ratios(kind, "nothing")).toFixed(2),
    median(ratios(kind, "noop")).toFixed(2),
    median(results[kind].cpuUs).toFixed(1),
    median(results[kind].cpuUs.map((value, slice) => value - results.nothing.cpuUs[slice])).toFixed(1),
  ]);
  const noise = Math.max(...kinds.map((kind) => spread(ratios(kind, "noop"))));
  return table(
    `${label}, ${heading}: medians, and ratios between neighbouring slices (the noisiest ±${(100 * noise).toFixed(0)} %)`,
    ["in front of the route", "requests/s", "to nothing", "to the no-op", "server CPU µs", "added"],
    rows,
  );
}
