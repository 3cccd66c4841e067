import { createPool, type Pool } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DatabaseServer, startMariadb } from "../../../tools/test-servers/src/index.js";
import { mysql, mysqlMigration } from "../src/mysql.js";
import { clientKillCase, raceCases, serverKillCase } from "./races.js";
import { suiteOf } from "./suite.js";

let server: DatabaseServer;
let pool: Pool;

beforeAll(async () => {
  server = await startMariadb();
  pool = createPool({ host: server.host, port: server.port, user: "root", database: "test" });
  await pool.query(mysqlMigration());
});
afterAll(async () => {
  await pool?.end();
  await server?.stop();
});

describe("MariaDB", () => {
  const target = () => ({ connection: { database: "mysql", port: server.port }, driver: mysql(pool) });
  raceCases(target);
  clientKillCase(target);
  serverKillCase(target, () => server);

  it("is told of a missing table by an error that prints the SQL", async () => {
    const missing = mysql(pool, { table: "nowhere" }).load(["key"]);
    await expect(missing).rejects.toMatchObject({ code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE") });
  });
});

suiteOf("a store in MariaDB", () => mysql(pool));
