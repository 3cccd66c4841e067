import { concurrency, consumeAll, createLimiter, slidingWindowCounter } from "@floodgate/core";
import { asCharge, createLimit } from "@floodgate/core/store";
import { redisStore } from "@floodgate/store-redis";
import { inRounds } from "./lib/child.mjs";
import { policiesOf } from "./lib/policies.mjs";
import { withRedis } from "./lib/redis.mjs";
import { median, medianRatio, spread, table } from "./lib/report.mjs";

/** What any limiter that keeps a state must do: read the clock and the state, write the state with an expiry, and reply. */
const floor = "TIME, GET and SET";
const floorScript = `local time = redis.call('TIME')
local value = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return { tonumber(time[1]), 1, 2 }`;

const [limit, window] = [1_000_000, "1h"];
const policies = policiesOf({ limit, window });

/** Keys of a subject, and calls of one round. */
const [keys, calls] = [50, 200];

const settlement = "settlement, a log of 5,000";
/** Each consume has a millisecond of its own, so that it is an entry of its own. */
const entries = 5000;

/** Settles one of the newest charges of a long log. `prepare` makes the charges of a round. */
async function settlementOf(redis) {
  let nowMs = Date.now();
  const store = redisStore(redis, { denyCache: false, clock: () => nowMs++ });
  const limiter = createLimiter({ name: settlement, policy: policies.slidingWindowLog, store, timeoutMs: 5000 });
  for (let i = 0; i < entries; i++) await limiter.consume("key");
  const charges = [];
  const prepare = async () => {
    charges.length = 0;
    for (let i = 0; i < calls; i++) charges.push(await limiter.consume("key"));
  };
  return { prepare, call: (_, i) => limiter.settle("key", charges[i], 2) };
}

/** How many slots one process keeps in flight, of how many keys. */
const inFlight = [
  [10_000, 50],
  [10_000, 1],
];

/** Renews slots in flight, one after the other. */
async function renewalOf(redis, slots, keys) {
  const store = redisStore(redis, { denyCache: false });
  const limit = createLimit(`renewal ${keys}`, concurrency({ limit: 10_000, hold: "1h" }));
  const held = [];
  for (let i = 0; i < slots; i++) held.push(await store.consume(limit, `key-${i % keys}`, 1));
  let next = 0;
  const call = async () => {
    const i = next++ % slots;
    held[i] = await store.renew(limit, `key-${i % keys}`, asCharge(held[i]));
  };
  return { call };
}

/** The server's time of one decision alone, of each algorithm, against a script of three commands. */
export function redisScript({ rounds = 40 }) {
  return withRedis(async (server, redis) => {
    const sha = await redis.script("LOAD", floorScript);
    const store = redisStore(redis, { denyCache: false });
    const subjects = { [floor]: { call: (key) => redis.evalsha(sha, 1, key, "x".repeat(22), "3600000") } };
    for (const [name, policy] of Object.entries(policies)) {
      const limiter = createLimiter({ name, policy, store, timeoutMs: 5000 });
      subjects[name] = { call: (key) => limiter.consume(key) };
    }
    const pair = ["1m", window].map((window) =>
      createLimiter({ name: `per ${window}`, policy: slidingWindowCounter({ limit, window }), store, timeoutMs: 5000 }),
    );
    subjects["two slidingWindowCounters"] = { call: (key) => consumeAll(pair.map((limiter) => ({ limiter, key }))) };
    subjects[settlement] = await settlementOf(redis);
    const slot = createLimiter({ name: "slot", policy: concurrency({ limit: 10_000, hold: "1h" }), store, timeoutMs: 5000 });
    subjects["concurrency, taken or given back"] = { call: async (key) => slot.refund(key, await slot.consume(key)) };
    for (const [slots, keys] of inFlight) subjects[`renewal, ${slots} slots of ${keys} keys`] = await renewalOf(redis, slots, keys);
    const names = Object.keys(subjects);
    const usecs = await inRounds("redis-script", names, rounds, (name) => usecOf(redis, subjects[name], name));
    const { redis_version: version } = await server.info("server");
    const rows = names.map((name) => [
      name,
      median(usecs[name]).toFixed(2),
      medianRatio(usecs[name], usecs[floor]).toFixed(2),
      `±${(100 * spread(usecs[name])).toFixed(0)} %`,
    ]);
    const heading = `Redis ${version}, usec per call of EVALSHA (INFO commandstats), one decision in flight, ${keys} keys, ${rounds} rounds of ${calls} calls, medians`;
    return table(heading, ["script", "µs a call", `x ${floor}`, "noise"], rows);
  });
}

async function usecOf(redis, { prepare, call }, name) {
  await prepare?.();
  await redis.config("RESETSTAT");
  for (let i = 0; i < calls; i++) await call(`${name}-${i % keys}`, i);
  return Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(await redis.info("commandstats"))?.[1]);
}
