import { createLimiter, fixedWindow } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { startCluster, startRedis } from "@floodgate/test-servers";
import { Cluster, Redis } from "ioredis";
import { Child, withChildren } from "./lib/child.mjs";
import { usageOf, withRedis } from "./lib/redis.mjs";
import { progress, table } from "./lib/report.mjs";

/** How many decisions are measured, of how many keys, and how many at a time. */
const [decisions, keys, inFlight] = [100_000, 1_000_000, 512];
/** How long each simulation lasts after its first second. */
const seconds = 2;
/** How busy a core should be at most, so that nobody waits for long. */
const busy = 0.7;

const stores = {
  "each decision in Redis": { denyCache: false },
  "with the deny cache": {},
  "with the deny cache and leases": { lease: true },
};

/** How far one limiter goes: servers measured, and thousands of processes simulated. */
export async function scale() {
  return `${await measured()}\n\n${await simulated()}`;
}

/** What decisions cost 1, 3 and 6 servers, by their own CPU time. */
async function measured() {
  const rows = [];
  for (const nodes of [1, 3, 6]) {
    const [cluster, client] = await serversOf(nodes);
    try {
      for (const [name, options] of Object.entries(stores)) {
        progress(`scale: ${nodes} servers, ${name}`);
        const store = redisStore(client, { ...options, prefix: `scale-${Object.keys(stores).indexOf(name)}` });
        const limiter = createLimiter({ name: "scale", policy: fixedWindow({ limit: 1000, window: "1m" }), store, timeoutMs: 5000 });
        await drive(limiter, 5000);
        const before = await Promise.all(cluster.nodes.map((node) => usageOf(node)));
        await drive(limiter, decisions);
        const after = await Promise.all(cluster.nodes.map((node) => usageOf(node)));
        const used = after.map(({ cpuUs }, i) => cpuUs - before[i].cpuUs);
        const all = used.reduce((sum, us) => sum + us, 0);
        const commands = after.reduce((sum, { commands }, i) => sum + commands - before[i].commands, 0);
        const perSecond = (busy * 1e6 * decisions) / Math.max(...used);
        rows.push([
          `${nodes} × ${name}`,
          (commands / decisions).toFixed(3),
          (all / decisions).toFixed(1),
          `${Math.round((100 * Math.max(...used)) / all)} %`,
          (Math.round(perSecond / 1000) * 1000).toLocaleString("en"),
        ]);
      }
    } finally {
      client.disconnect();
      await cluster.stop();
    }
  }
  return table(
    `Measured: ${keys.toLocaleString("en")} keys by Zipf's law, 1,000 a minute each, ${inFlight} in flight, ${decisions.toLocaleString("en")} decisions`,
    ["servers", "commands a decision", "µs of servers", "the busiest", `a second at ${busy * 100} % of the busiest core`],
    rows,
  );
}

async function serversOf(nodes) {
  if (nodes > 1) {
    const cluster = await startCluster({ masters: nodes, replicasPerMaster: 0 });
    const client = new Cluster(cluster.nodes.map(({ port }) => ({ host: "127.0.0.1", port })));
    return [cluster, client];
  }
  const server = await startRedis();
  return [{ nodes: [server], stop: () => server.stop() }, new Redis(server.port)];
}

/** Decides keys by Zipf's law: the n-th most frequent one has a share of 1/n. */
async function drive(limiter, count) {
  const most = Math.log(keys);
  let left = count;
  const worker = async () => {
    while (left-- > 0) {
      const rank = Math.floor(Math.exp(Math.random() * most));
      await limiter.consume(`key-${rank}`);
      if (left % 1000 === 0) await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
}

const zone = [0.5];
const regions = [5, 80];

/** Requests of one hot key, by what is asked of it. */
const scenarios = [
  { processes: 1000, perSecond: 100_000, limit: 200_000, lease: false, roundTripsMs: zone },
  { processes: 1000, perSecond: 100_000, limit: 200_000, lease: true, roundTripsMs: zone },
  { processes: 1000, perSecond: 100_000, limit: 50_000, lease: false, roundTripsMs: zone },
  { processes: 1000, perSecond: 100_000, limit: 50_000, lease: true, roundTripsMs: zone },
  { processes: 100, perSecond: 1_000_000, limit: 2_000_000, lease: false, roundTripsMs: zone },
  { processes: 100, perSecond: 1_000_000, limit: 2_000_000, lease: true, roundTripsMs: zone },
  { processes: 1000, perSecond: 1_000_000, limit: 2_000_000, lease: true, roundTripsMs: zone },
  { processes: 1000, perSecond: 100_000, limit: 50_000, lease: false, roundTripsMs: regions, timeoutMs: 500 },
  { processes: 1000, perSecond: 100_000, limit: 50_000, lease: true, roundTripsMs: regions, timeoutMs: 500 },
  { processes: 1000, perSecond: 100_000, limit: 50_000, lease: { lifeMs: 500 }, roundTripsMs: regions, timeoutMs: 500 },
];

/** One hot key of many processes, on a virtual clock: see scale-child.mjs. */
function simulated() {
  return withRedis(async (server) => {
    const rows = await withChildren([new Child("scale-child.mjs", [server.port])], async ([child]) => {
      const made = [];
      for (const scenario of scenarios) {
        progress(`scale: simulation ${made.length + 1} of ${scenarios.length}`);
        made.push(rowOf(scenario, await child.ask({ ...scenario, seconds })));
      }
      return made;
    });
    return table(
      `Simulated: one key, a fixed window of 1 s, ${seconds} windows after the first, in which the load rises`,
      [
        "processes, requests a second, limit, round trip",
        "commands a second",
        "a decision",
        "admitted",
        "p50",
        "p99",
        "p99.9 ms",
        "without Redis",
      ],
      rows,
    );
  });
}

function rowOf({ processes, perSecond, limit, lease, roundTripsMs }, { decisions, commands, admitted, waits, failed }) {
  const shares = admitted.map((count) => (100 * count) / Math.min(limit, decisions / seconds));
  const all = waits.reduce((sum, [, count]) => sum + count, 0);
  const quantile = (share) => {
    let below = 0;
    for (const [waitMs, count] of waits) {
      below += count;
      if (below >= share * all) return waitMs.toFixed(1);
    }
    return "-";
  };
  const how = lease === false ? "deny cache" : lease === true ? "leases" : `leases of ${lease.lifeMs} ms`;
  return [
    `${processes.toLocaleString("en")}, ${perSecond.toLocaleString("en")}, ${limit.toLocaleString("en")}, ${roundTripsMs.join(" and ")} ms, ${how}`,
    Math.round(commands / seconds).toLocaleString("en"),
    (commands / decisions).toFixed(4),
    `${Math.min(...shares).toFixed(1)} to ${Math.max(...shares).toFixed(1)} %`,
    ...[0.5, 0.99, 0.999].map(quantile),
    `${((100 * failed) / decisions).toFixed(1)} %`,
  ];
}
