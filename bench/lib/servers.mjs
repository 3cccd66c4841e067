import { Child } from "./child.mjs";
import { median, medianRatio, progress, spread, table } from "./report.mjs";

const warmUpSeconds = 1;

/** A server in a process of its own. */
export function serverOf(kind, ...args) {
  const child = new Child("server-child.mjs", [kind, ...args]);
  return { port: () => child.ask("port"), cpuUs: () => child.ask("cpu"), stop: () => child.stop() };
}

/**
 * Loads servers in turn, slice by slice, so that other load on the machine affects all alike. Each round has fresh servers and clients, because
 * a reused process favours the kind that warmed it up.
 * @param kinds by name, how to start the server, and what its client sends.
 * @returns by name, the requests a second, the 99th percentile and the server's CPU time of each slice.
 */
export async function measureServers(label, kinds, { rounds, seconds, sliceSeconds }) {
  const results = Object.fromEntries(Object.keys(kinds).map((name) => [name, { perSecond: [], p99Ms: [], cpuUs: [] }]));
  for (let round = 1; round <= rounds; round++) {
    progress(`${label}: round ${round} of ${rounds}`);
    const pairs = [];
    try {
      for (const [name, { start, load }] of Object.entries(kinds)) {
        const pair = { results: results[name], server: await start(), client: new Child("client-child.mjs", []) };
        pairs.push(pair);
        pair.load = { ...load, port: await pair.server.port(), seconds: sliceSeconds };
        await pair.client.ask({ ...pair.load, seconds: warmUpSeconds });
      }
      for (let slice = 0; slice * sliceSeconds < seconds; slice++) {
        for (const { results, server, client, load } of pairs) {
          const beforeUs = await server.cpuUs();
          const { requests, elapsedMs, p99Ms } = await client.ask(load);
          const afterUs = await server.cpuUs();
          results.perSecond.push((requests * 1000) / elapsedMs);
          results.p99Ms.push(p99Ms);
          results.cpuUs.push((afterUs - beforeUs) / requests);
        }
      }
    } finally {
      await Promise.all(pairs.flatMap(({ server, client }) => [server.stop(), client.stop()]));
    }
  }
  return results;
}

/** @param bases the kinds to which all are compared, and how a column calls them. The CPU time over the first is shown too. */
export function serverTable(heading, labels, results, bases) {
  const [first] = Object.keys(bases);
  const rows = Object.entries(labels).map(([name, label]) => {
    const { perSecond, p99Ms, cpuUs } = results[name];
    const ratios = Object.keys(bases).map((base) => medianRatio(perSecond, results[base].perSecond).toFixed(2));
    const added = median(cpuUs.map((us, slice) => us - results[first].cpuUs[slice]));
    return [label, median(perSecond).toFixed(0), ...ratios, median(p99Ms).toFixed(1), median(cpuUs).toFixed(1), added.toFixed(1)];
  });
  const noise = Math.max(
    ...Object.values(results).map(({ perSecond }) => spread(perSecond.map((n, i) => n / results[first].perSecond[i]))),
  );
  return table(
    `${heading}: medians, and ratios between neighbouring slices (the noisiest ±${(100 * noise).toFixed(0)} %)`,
    ["", "requests/s", ...Object.values(bases), "p99 ms", "server CPU µs", "added"],
    rows,
  );
}
