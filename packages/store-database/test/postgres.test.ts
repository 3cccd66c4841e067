import { PGlite } from "@electric-sql/pglite";
import { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { type DatabaseServer, startPostgres } from "../../../tools/test-servers/src/index.js";
import { postgres, postgresMigration } from "../src/postgres.js";
import { suiteOf } from "./suite.js";

let server: DatabaseServer;
let pool: Pool;
let lite: PGlite | undefined;

beforeAll(async () => {
  server = await startPostgres();
  pool = new Pool({ host: server.host, port: server.port, user: "postgres" });
  if (allRuns) lite = await PGlite.create();
  for (const text of postgresMigration().split("\n\n")) await Promise.all([pool.query(text), lite?.exec(text)]);
});
afterAll(async () => {
  await pool?.end();
  await lite?.close();
  await server?.stop();
});

suiteOf("a store in Postgres", () => postgres(pool));
if (allRuns) suiteOf("a store in PGlite", () => postgres(lite as PGlite));
