import { createLimiter, fixedWindow } from "@floodgate/core";
import { redisStore } from "@floodgate/store-redis";
import { askOnce, inRounds } from "./lib/child.mjs";
import { askInFlight } from "./lib/in-flight.mjs";
import { usageOf, withRedis } from "./lib/redis.mjs";
import { median, medianRatio, progress, table } from "./lib/report.mjs";

const inFlight = 64;
const [processes, stores, limit] = [4, 50, 5_000];

/** One hot key with leases against INCR, and fifty stores in four processes on one key. */
export function redisLeases({ rounds = 5, seconds = 1 }) {
  return withRedis(async (server, redis) => `${await oneKey(redis, rounds, seconds)}\n\n${await manyStores(server, seconds + 4)}`);
}

async function oneKey(redis, rounds, seconds) {
  const policy = fixedWindow({ limit: 1_000_000_000, window: "1h" });
  const limiterOf = (lease) => createLimiter({ name: `hot ${lease}`, policy, store: redisStore(redis, { lease }), timeoutMs: 5000 });
  const [asking, leasing] = [limiterOf(false), limiterOf(true)];
  const subjects = {
    INCR: () => redis.incr("bench:hot"),
    "each decision in Redis": () => asking.consume("hot"),
    "with leases": () => leasing.consume("hot"),
  };
  const names = Object.keys(subjects);
  const rates = await inRounds("redis-leases", names, rounds, async (name) => {
    const { perSecond } = await askInFlight(subjects[name], { inFlight, seconds, keys: 1 });
    return perSecond;
  });
  const rows = names.map((name) => [
    name,
    Math.round(median(rates[name])).toLocaleString("en"),
    medianRatio(rates[name], rates.INCR).toFixed(1),
  ]);
  return table(`One hot key, ${inFlight} in flight, ${rounds} rounds of ${seconds} s, medians`, ["subject", "a second", "x INCR"], rows);
}

async function manyStores(server, seconds) {
  progress("redis-leases: fifty stores");
  const share = (i) => Math.floor(stores / processes) + (i < stores % processes ? 1 : 0);
  const answers = Array.from({ length: processes }, (_, i) =>
    askOnce("redis-leases-child.mjs", [server.port, share(i), limit, seconds], "drive"),
  );
  const windows = new Map();
  let asked = 0;
  for (const { admitted, requests } of await Promise.all(answers)) {
    asked += requests;
    for (const [window, count] of admitted) windows.set(window, (windows.get(window) ?? 0) + count);
  }
  // The first and the last window are not whole.
  const whole = [...windows]
    .sort(([a], [b]) => a - b)
    .slice(1, -1)
    .map(([, count]) => count);
  const { commands } = await usageOf(server);
  const rows = [
    ["windows", whole.length],
    ["admitted, least and most of a window", `${Math.min(...whole)} to ${Math.max(...whole)}`],
    ["of the limit, least", `${((100 * Math.min(...whole)) / limit).toFixed(1)} %`],
    ["requests", asked],
    ["runs of the script since the start", commands],
  ];
  return table(`${stores} stores in ${processes} processes on one key, ${limit} a second each window`, ["", ""], rows);
}
