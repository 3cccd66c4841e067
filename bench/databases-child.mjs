// One subject of `databases`: decides as often as it can, with so many decisions in flight at a time.
import { setTimeout as sleep } from "node:timers/promises";
import { PostgresStore } from "@acpr/rate-limit-postgresql";
import { databaseStore } from "@floodgate/store-database";
import { mysql, mysqlMigration } from "@floodgate/store-database/mysql";
import { postgres, postgresMigration } from "@floodgate/store-database/postgres";
import { createPool } from "mysql2/promise";
import { Pool } from "pg";
import { RateLimiterMySQL, RateLimiterPostgres } from "rate-limiter-flexible";
import { serve } from "./lib/child.mjs";
import { askInFlight, askOf, neverReached } from "./lib/in-flight.mjs";

const [database, subject, port] = process.argv.slice(2);

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
  /** The least that a store does which writes one row. */
  async UPDATE({ pool }) {
    await pool.query("CREATE UNLOGGED TABLE bare (key text PRIMARY KEY, version bigint NOT NULL)");
    const add = (key) => pool.query({ name: "add", text: "INSERT INTO bare VALUES ($1, 0) ON CONFLICT DO NOTHING", values: [key] });
    return async (key) => {
      const changed = { name: "bare", text: "UPDATE bare SET version = version + 1 WHERE key = $1", values: [key] };
      if ((await pool.query(changed)).rowCount === 0) await add(key);
    };
  },
  Floodgate: async ({ pool, store }) => askOf(await store(pool)),
  async "rate-limiter-flexible"({ pool, Peer }) {
    // It takes the pool with callbacks.
    const options = { storeClient: pool.pool ?? pool, dbName: "test", tableName: "peer", points: neverReached, duration: 3600 };
    const limiter = await new Promise((resolve, reject) => {
      const made = new Peer(options, (error) => (error ? reject(error) : resolve(made)));
    });
    return (key) => limiter.consume(key);
  },
  async "express-rate-limit"({ pool }) {
    const store = new PostgresStore({ host, port: Number(port), user: "postgres", max: 10 }, "bench");
    store.init({ windowMs: 3_600_000 });
    // It makes its functions by itself, and says not when.
    const isMade = async () => (await pool.query("SELECT to_regproc('rate_limit.agg_increment') AS made")).rows[0].made !== null;
    while (!(await isMade())) await sleep(100);
    return (key) => store.increment(key);
  },
};

const ask = await subjects[subject](databases[database]);

serve(async (question) => {
  const { asked, cpu, perSecond } = await askInFlight(ask, question);
  return { perSecond, cpuUs: cpu / asked };
});
