import { PGlite } from "@electric-sql/pglite";
import { Pool } from "pg";
import { afterAll, beforeAll, test } from "vitest";
import { allRuns, runs } from "../../../test/runs.js";
import { type DatabaseServer, startPostgres } from "../../../tools/test-servers/src/index.js";
import { type PostgresClient, postgres, postgresMigration } from "../src/postgres.js";
import { compareWithMemory } from "./compare-with-memory.js";
import { hostileKeysCase, suiteOf, swapManyCase } from "./suite.js";

let server: DatabaseServer;
let pool: Pool;
let latin: Pool;
let lite: PGlite | undefined;

beforeAll(async () => {
  server = await startPostgres();
  pool = new Pool({ host: server.host, port: server.port, user: "postgres" });
  await pool.query("CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
  latin = new Pool({ host: server.host, port: server.port, user: "postgres", database: "latin" });
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
if (allRuns) suiteOf("a store in PGlite", () => postgres(lite as PGlite));

/** A server that ends up to five statements in a row for other transactions, as with serializable ones. Every kind of statement may be one. */
function refusing(): PostgresClient {
  let refused = 0;
  return {
    async query(text, values) {
      if (refused < 5 && Math.random() < 0.4) {
        refused++;
        throw Object.assign(new Error("could not serialize access"), { code: Math.random() < 0.5 ? "40001" : "40P01" });
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
