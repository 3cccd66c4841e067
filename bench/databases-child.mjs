// One subject of `databases`: decides as often as it can, with so many decisions in flight at a time.
import { performance } from "node:perf_hooks";
import { createLimiter, slidingWindowCounter } from "@floodgate/core";
import { databaseStore } from "@floodgate/store-database";
import { mysql, mysqlMigration } from "@floodgate/store-database/mysql";
import { postgres, postgresMigration } from "@floodgate/store-database/postgres";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { RateLimiterMySQL, RateLimiterPostgres } from "rate-limiter-flexible";
import { serve } from "./lib/child.mjs";

const [database, subject, port] = process.argv.slice(2);
/** No request is rejected: a rejection would be cheaper. */
const limit = 1_000_000_000;

const host = "127.0.0.1";
const databases = {
  Postgres: {
    pool: new Pool({ host, port, user: "postgres", max: 10 }),
    store: (pool) => pool.query(postgresMigration({ unlogged: true })).then(() => databaseStore(postgres(pool))),
    floor: (pool) => () => pool.query({ name: "one", text: "SELECT 1" }),
    Peer: RateLimiterPostgres,
  },
  MariaDB: {
    pool: createPool({ host, port, user: "root", database: "test", connectionLimit: 10 }),
    store: (pool) => pool.query(mysqlMigration()).then(() => databaseStore(mysql(pool))),
    floor: (pool) => () => pool.execute("SELECT 1"),
    Peer: RateLimiterMySQL,
  },
};

const subjects = {
  "SELECT 1": ({ pool, floor }) => floor(pool),
  async Floodgate({ pool, store }) {
    const policy = slidingWindowCounter({ limit, window: "1h" });
    const limiter = createLimiter({ name: "bench", policy, store: await store(pool), timeoutMs: 60_000, onStoreError: "deny" });
    return async (key) => {
      if ((await limiter.consume(key)).degraded) throw new Error("The store failed.");
    };
  },
  async "rate-limiter-flexible"({ pool, Peer }) {
    const options = { storeClient: pool, dbName: "test", tableName: "peer", points: limit, duration: 3600 };
    const limiter = await new Promise((resolve, reject) => {
      const made = new Peer(options, (error) => (error ? reject(error) : resolve(made)));
    });
    return (key) => limiter.consume(key);
  },
};

const ask = await subjects[subject](databases[database]);

serve(async ({ inFlight, seconds, keys }) => {
  let asked = 0;
  const startMs = performance.now();
  const startCpu = process.cpuUsage();
  const askInTurn = async () => {
    while (performance.now() - startMs < seconds * 1000) await ask(`key-${asked++ % keys}`);
  };
  await Promise.all(Array.from({ length: inFlight }, askInTurn));
  const { user, system } = process.cpuUsage(startCpu);
  return { perSecond: (asked / (performance.now() - startMs)) * 1000, cpuUs: (user + system) / asked };
});
