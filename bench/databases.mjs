import { startMariadb, startPostgres } from "@floodgate/test-servers";
import { Child, inRounds, withChildren } from "./lib/child.mjs";
import { median, medianRatio, table } from "./lib/report.mjs";

const ours = "Floodgate";
const databaseKinds = {
  Postgres: { start: startPostgres, names: ["SELECT 1", "UPDATE", ours, "rate-limiter-flexible", "express-rate-limit"] },
  MariaDB: { start: startMariadb, names: ["SELECT 1", ours, "rate-limiter-flexible"] },
  cluster: { names: ["a message and its answer", ours, "rate-limiter-flexible", "express-rate-limit"] },
};

/** Decisions in Postgres and MariaDB and in the primary of `node:cluster`, each subject in a process of its own, in turn. */
export async function databases({ rounds = 3, seconds = 1, inFlight, only }) {
  const tables = [];
  for (const [database, { start, names }] of Object.entries(databaseKinds)) {
    if (only !== undefined && database !== only) continue;
    const server = await start?.();
    try {
      const children = names.map((name) =>
        server === undefined ? new Child("cluster-child.mjs", [name]) : new Child("databases-child.mjs", [database, name, server.port]),
      );
      await withChildren(children, async () => {
        for (const keys of [1, 1000]) {
          const rows = [];
          for (const level of inFlight) {
            const label = `databases: ${database}, ${keys} keys, ${level} in flight`;
            const results = await inRounds(label, names, rounds, (name, isWarmUp) =>
              children[names.indexOf(name)].ask({ inFlight: level, seconds: isWarmUp ? 2 : seconds, keys }),
            );
            const speeds = (name) => results[name].map(({ perSecond }) => perSecond);
            for (const name of names) {
              const cpu = median(results[name].map(({ cpuUs }) => cpuUs));
              const ratio = (other) => `${medianRatio(speeds(ours), speeds(other)).toFixed(2)}x`;
              rows.push([name, level, Math.round(median(speeds(name))), cpu.toFixed(0), name === ours ? "" : ratio(name)]);
            }
          }
          const heading = `${database}, ${keys === 1 ? "one key" : "1,000 keys"}, ${rounds} rounds of ${seconds} s, medians; the last column is Floodgate's speed over this one's`;
          tables.push(table(heading, ["", "in flight", "decisions/s", "CPU µs", "Floodgate"], rows));
        }
      });
    } finally {
      await server?.stop();
    }
  }
  return tables.join("\n");
}
