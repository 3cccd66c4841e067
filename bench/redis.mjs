import { inTurn } from "./lib/child.mjs";
import { usageOf, withRedis } from "./lib/redis.mjs";
import { median, spread, table } from "./lib/report.mjs";
import { floors, subjects } from "./redis/subjects.mjs";

/**
 * V8 compiles for about this long: in the first second, a decision takes two to three times the CPU time. Each measurement has its own warm-up,
 * because V8 drops the code of a process that waits while others are measured.
 */
const warmUpSeconds = 2;

export function redis({ rounds = 5, seconds = 1, inFlight, only }) {
  const names = Object.keys(subjects).filter((name) => floors.includes(name) || only === undefined || name.includes(only));
  const bytes = {};
  return withRedis(async (server) => {
    const children = Object.fromEntries(names.map((name) => [name, ["redis-child.mjs", [name, server.port]]]));
    const results = new Map();
    for (const level of inFlight) {
      const ask = async (client, isWarmUp, name) => {
        if (isWarmUp) return;
        await client.ask({ inFlight: level, seconds: warmUpSeconds });
        await server.command("FLUSHALL");
        await client.ask("visit keys");
        // A denied key may be known from the warm-up, and then nothing is written.
        if (!subjects[name].denied) bytes[name] ??= await bytesOf(server);
        return measure(server, client, subjects[name], { inFlight: level, seconds });
      };
      results.set(level, await inTurn(`redis: ${level} in flight`, children, { processes: rounds, rounds: 1, ask }));
    }
    const { redis_version: version } = await server.info("server");
    const heading = `Redis ${version}, 1,000 keys unless said, ${rounds} rounds of ${seconds} s, medians; x = ratio within each round; CPU and commands are a decision's`;
    const tables = [...results].map(([level, ofLevel]) => tableOf(ofLevel, `${level} in flight, ${heading}`));
    return [...tables, bytesTable(bytes)].join("\n");
  });
}

async function measure(server, client, { command }, load) {
  const before = await usageOf(server, command);
  const told = await client.ask(load);
  const after = await usageOf(server, command);
  const each = (what) => (after[what] - before[what]) / told.decisions;
  return { ...told, serverUs: each("cpuUs"), commandUs: each("commandUs"), commands: each("commands") };
}

async function bytesOf(server) {
  const keys = (await server.command("KEYS", "*")).slice(0, 1000);
  return median(await Promise.all(keys.map((key) => server.command("MEMORY", "USAGE", key))));
}

function tableOf(results, heading) {
  const names = Object.keys(results);
  const all = (name, measured) => results[name].map((one) => one[measured]);
  const ratio = (name, to) => median(all(name, "perSecond").map((value, round) => value / results[to][round].perSecond)).toFixed(2);
  const mid = (name, measured, digits) => median(all(name, measured)).toFixed(digits);
  const rows = names.map((name) => [
    name,
    mid(name, "perSecond", 0),
    ...floors.map((floor) => ratio(name, floor)),
    `±${(100 * spread(all(name, "perSecond"))).toFixed(0)} %`,
    mid(name, "p50Ms", 3),
    mid(name, "p99Ms", 3),
    mid(name, "clientUs", 2),
    mid(name, "serverUs", 2),
    mid(name, "commandUs", 2),
    mid(name, "commands", 3),
  ]);
  const columns = ["subject", "decisions/s", ...floors.map((floor) => `x ${floor}`), "noise", "p50 ms", "p99 ms"];
  return table(heading, [...columns, "client CPU µs", "server CPU µs", "in commands", "commands"], rows);
}

function bytesTable(bytes) {
  return table(
    "Bytes a key (MEMORY USAGE, key and expiry included) after ten requests, median",
    ["subject", "bytes"],
    Object.entries(bytes),
  );
}
