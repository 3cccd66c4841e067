import { PGlite } from "@electric-sql/pglite";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { type DatabaseServer, startPostgres } from "../../../tools/test-servers/src/index.js";
import { storeConformance } from "../../conformance/src/store.js";
import { databaseStore } from "../src/index.js";
import { postgres, postgresMigration } from "../src/postgres.js";

let server: DatabaseServer;
let pool: Pool;
let prefixes = 0;
const prefix = (): string => `run-${prefixes++}`;

beforeAll(async () => {
  server = await startPostgres();
  pool = new Pool({ host: server.host, port: server.port, user: "postgres" });
  await pool.query(postgresMigration());
});
afterAll(async () => {
  await pool?.end();
  await server?.stop();
});

storeConformance(
  { describe, it },
  {
    name: "a store in Postgres",
    makeStore: (clock) => databaseStore(postgres(pool), { clock, denyCache: false, prefix: prefix() }),
    effort: allRuns ? 1 : 0.02,
  },
);

describe("a store in PGlite", async () => {
  const lite = await PGlite.create();
  await lite.exec(postgresMigration());
  storeConformance(
    { describe, it },
    {
      name: "passes the suite",
      makeStore: (clock) => databaseStore(postgres(lite), { clock, denyCache: false, prefix: prefix() }),
      effort: allRuns ? 0.3 : 0.01,
    },
  );
});
