import { createPool, type Pool } from "mysql2/promise";
import { afterAll, beforeAll } from "vitest";
import { type DatabaseServer, startMariadb } from "../../../tools/test-servers/src/index.js";
import { mysql, mysqlMigration } from "../src/mysql.js";
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

suiteOf("a store in MariaDB", () => mysql(pool));
