// A worker of races: receives a race, prepares, and on "go" sends its requests as fast as it can.
import { on } from "node:events";
import { createRequire } from "node:module";
import { createLimiter } from "@floodgate/core";
import { databaseStore } from "@floodgate/store-database";
import { libsql } from "@floodgate/store-database/libsql";
import { mysql } from "@floodgate/store-database/mysql";
import { postgres } from "@floodgate/store-database/postgres";
import { sqlite } from "@floodgate/store-database/sqlite";
import { openSqlite } from "./open-sqlite.mjs";

const require = createRequire(import.meta.url);

const drivers = {
  postgres({ port, options }) {
    const pool = new (require("pg").Pool)({ host: "127.0.0.1", port, user: "postgres", max: 4, options });
    // The server is killed in some races.
    pool.on("error", () => undefined);
    return postgres(pool);
  },
  mysql: ({ port }) => mysql(require("mysql2/promise").createPool({ host: "127.0.0.1", port, user: "root", database: "test" })),
  libsql: ({ url, timeout }) => libsql(require("@libsql/client").createClient({ url, timeout })),
  sqlite: ({ file }) => sqlite(openSqlite(file)),
};

const messages = on(process, "message");
process.once("disconnect", () => process.exit());
process.send("started");

let store;
for (;;) {
  const [race] = (await messages.next()).value;
  store ??= databaseStore(drivers[race.database](race), { denyCache: race.denyCache });
  const limiter = createLimiter({ ...race.limit, store, timeoutMs: 60_000, onStoreError: "deny" });
  process.send("ready");
  await messages.next();
  process.send(await run(limiter, race));
}

/** Returns the number of allowed requests, on `keys` in turn, and tells of each if that is asked for. */
async function run(limiter, { requests, inFlight, keys = ["one"], tell }) {
  let left = requests;
  let allowed = 0;
  let degraded = 0;
  const askInTurn = async () => {
    while (left-- > 0) {
      const decision = await limiter.consume(keys[left % keys.length]);
      if (decision.degraded) degraded++;
      if (!decision.allowed) continue;
      allowed++;
      // What is told is on its way before the next request, also if nobody reads it now.
      if (tell) await new Promise((sent) => process.send({ allowed }, sent));
    }
  };
  await Promise.all(Array.from({ length: inFlight }, askInTurn));
  return { allowed, degraded };
}
