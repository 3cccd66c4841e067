import { PGlite } from "@electric-sql/pglite";
import { Pool, type PoolConfig, types } from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { allRuns, runs } from "../../../test/runs.js";
import { type DatabaseServer, startPostgres } from "../../../tools/test-servers/src/index.js";
import type { Version } from "../src/index.js";
import { type PostgresClient, postgres, postgresMigration } from "../src/postgres.js";
import { compareWithMemory } from "./compare-with-memory.js";
import {
  clientOptionsCase,
  hostileKeysCase,
  permissionsCase,
  severalLimitsRaceCase,
  suiteOf,
  swapManyCase,
  undoneInsertCase,
} from "./suite.js";

let server: DatabaseServer;
let pool: Pool;
let latin: Pool;
let lite: PGlite | undefined;

/** Its connections may still be closing when the server stops. */
const poolOf = (options: PoolConfig = {}): Pool =>
  new Pool({ host: server.host, port: server.port, user: "postgres", ...options }).on("error", () => undefined);

beforeAll(async () => {
  server = await startPostgres();
  pool = poolOf();
  await pool.query("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
  latin = poolOf({ database: "latin" });
  if (allRuns) lite = await PGlite.create();
  for (const text of postgresMigration().split("\n\n")) await Promise.all([pool.query(text), latin.query(text), lite?.exec(text)]);
});
afterAll(async () => {
  await pool?.end();
  await latin?.end();
  await lite?.close();
  await server?.stop();
});

suiteOf("a store in Postgres", () => postgres(pool));
hostileKeysCase("a store in Postgres with the encoding LATIN1", () => postgres(latin));
swapManyCase("the driver for Postgres", () => postgres(pool));
severalLimitsRaceCase("a store in Postgres", () =>
  Array.from({ length: 4 }, () => {
    const made = poolOf({ max: 2 });
    onTestFinished(() => made.end());
    return postgres(made);
  }),
);
undoneInsertCase(
  "the driver for Postgres",
  () => postgres(pool),
  async (keys) => {
    const holder = await pool.connect();
    onTestFinished(() => holder.release());
    await holder.query("BEGIN");
    await holder.query("INSERT INTO floodgate SELECT key, 1, '1', 1 FROM unnest($1::text[]) key", [keys]);
    return () => holder.query("ROLLBACK");
  },
);
permissionsCase("a store in Postgres", async (rights) => {
  const schema = `schema_${Math.random().toString(36).slice(2)}`;
  const table = `${schema}.floodgate`;
  await pool.query(`CREATE ROLE ${schema} LOGIN; CREATE SCHEMA ${schema}; ${postgresMigration({ table })}`);
  if (rights !== "no schema") await pool.query(`GRANT USAGE ON SCHEMA ${schema} TO ${schema}`);
  const given = Array.isArray(rights) ? rights : ["SELECT", "INSERT", "UPDATE", "DELETE"];
  await pool.query(`GRANT ${given} ON ${table} TO ${schema}`);
  const made = poolOf({ user: schema, database: "postgres", options: `-c default_transaction_read_only=${rights === "read-only"}` });
  onTestFinished(() => made.end());
  return postgres(made, { table });
});
if (allRuns) suiteOf("a store in PGlite", () => postgres(lite as PGlite));

clientOptionsCase("a store in Postgres", async () => {
  const driverWith = (options: object) => {
    const made = poolOf({ max: 2, ...options });
    onTestFinished(() => made.end());
    return postgres(made);
  };
  const texts = { getTypeParser: () => (text: string) => text };
  const bigints = { getTypeParser: (id: number, format: string) => (id === 20 ? BigInt : types.getTypeParser(id, format as "text")) };
  // As postgres.js without `fetch_types`, and Bun: they have `unsafe`, answer only rows, and make no arrays of values.
  const unsafe = async (text: string, values: unknown[]) => {
    if (values.some(Array.isArray)) throw new Error("malformed array literal");
    return (await pool.query(text, values)).rows;
  };
  const sql = postgres(Object.assign(() => undefined, { unsafe }));
  const buffers = { getTypeParser: (id: number, format: string) => (id === 25 ? Buffer.from : types.getTypeParser(id, format as "text")) };
  const inRows: PostgresClient = { query: async (text, values) => (await pool.query({ text, values, rowMode: "array" })).rows };
  // As TypeORM: of some statements, it answers the rows and how many were written.
  const typeorm: PostgresClient = {
    async query(text, values) {
      const { command, rows, rowCount } = await pool.query(text, values);
      return command === "UPDATE" || command === "DELETE" ? [rows, rowCount] : rows;
    },
  };
  const decides = [...[{}, { types: bigints }, { types: texts }].map(driverWith), sql, postgres(typeorm)];
  const silent = { query: async () => undefined } as unknown as PostgresClient;
  return { decides, refused: [postgres(inRows), postgres(silent), driverWith({ types: buffers })] };
});

test("a row in Postgres ends after its life, at a whole minute, so that most changes leave the index alone", async () => {
  const driver = postgres(pool);
  const lifeMs = 90_000;
  const prefix = `ends-${Math.random()}-`;
  const swap = async (was?: Version) => {
    const fromMs = Date.now();
    const change = (n: number) => ({ key: `${prefix}${n}`, was, value: "1", lifeMs });
    const swapped = await driver.swap([change(1)], { fromMs: 0, untilMs: fromMs + 60_000 });
    if (was === undefined) await driver.swap([change(2), change(3)], { fromMs: 0, untilMs: fromMs + 60_000 });
    const { rows } = await pool.query("SELECT ends_ms::float8 AS ends FROM floodgate WHERE starts_with(key, $1)", [prefix]);
    expect(rows).toHaveLength(3);
    for (const { ends } of rows) {
      expect(ends % 60_000).toBe(0);
      expect(ends).toBeGreaterThanOrEqual(fromMs + lifeMs);
      expect(ends).toBeLessThan(Date.now() + lifeMs + 120_000);
    }
    return swapped.rows[0]?.version;
  };
  await swap(await swap());
});

/** A server that ends up to five statements in a row for other transactions, as with serializable ones. Every kind of statement may be one. */
function refusing(): PostgresClient {
  let refused = 0;
  return {
    async query(text, values) {
      if (refused < 5 && Math.random() < 0.4) {
        const code = Math.random() < 0.5 ? "40001" : "40P01";
        // As pg, Sequelize and Prisma tell it.
        const errors = [
          { code },
          { original: { code } },
          { code: "P2010", meta: { driverAdapterError: { cause: { originalCode: code } } } },
        ];
        throw Object.assign(new Error("could not serialize access"), errors[refused++ % errors.length]);
      }
      refused = 0;
      return pool.query(text, values);
    },
  };
}

test(
  "a store in Postgres decides, settles, blocks and shows everything as a memory store does, while the server ends its statements",
  {
    timeout: 120_000,
  },
  () => compareWithMemory(() => postgres(refusing()), runs(40).numRuns),
);
