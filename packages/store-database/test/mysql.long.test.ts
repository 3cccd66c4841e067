import { fixedWindow } from "@floodgate/core";
import { createLimit, type Limit } from "@floodgate/core/store";
import { createPool as createCallbackPool } from "mysql2";
import { createPool, type Pool, type PoolOptions } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type DatabaseServer, mysqlServers } from "../../../tools/test-servers/src/index.js";
import { databaseStore } from "../src/index.js";
import { type MysqlExecutor, mysql, mysqlMigration } from "../src/mysql.js";
import { clientKillCase, raceCases, serverKillCase } from "./races.js";
import { clientOptionsCase, permissionsCase, severalLimitsRaceCase, suiteOf, undoneInsertCase } from "./suite.js";

/** Makes the server know one zone: the hour that ends at this second comes twice. */
const changesAt = 1_792_890_000;
const zone = `INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (900, 'N');
INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES ('Floodgate/Autumn', 900);
INSERT INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, \`Offset\`, Is_DST, Abbreviation)
VALUES (900, 0, 7200, 1, 'SUM'), (900, 1, 3600, 0, 'WIN');
INSERT INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES (900, 1, 0), (900, ${changesAt}, 1);`;

describe.each(mysqlServers())("$name", ({ name, start }) => {
  let server: DatabaseServer;
  let pool: Pool;

  beforeAll(async () => {
    server = await start();
    pool = createPool({ host: server.host, port: server.port, user: "root", database: "test" });
    await pool.query(mysqlMigration());
  });
  afterAll(async () => {
    await pool?.end();
    await server?.stop();
  });

  describe("its driver", () => {
    const target = () => ({ connection: { database: "mysql", port: server.port }, driver: mysql(pool) });
    raceCases(target);
    clientKillCase(target);
    serverKillCase(target, () => server);

    it("needs a pool with a database for several rows in MySQL, and its error says so", async () => {
      const made = createPool({ host: server.host, port: server.port, user: "root" });
      onTestFinished(() => made.end());
      const store = databaseStore(mysql(made, { table: "test.floodgate" }));
      const limits = ["one", "two"].map((limit) => createLimit(`no-database-${limit}`, fixedWindow({ limit: 9, window: "365d" })));
      expect(await store.consume(limits[0] as Limit, "key", 1, 60_000)).toMatchObject({ remaining: 8 });
      const both = Promise.resolve(
        store.consumeAll(
          limits.map((limit) => ({ limit, key: "key", cost: 1 })),
          60_000,
        ),
      );
      if (name === "MariaDB") expect(await both).toMatchObject([{ remaining: 7 }, { remaining: 8 }]);
      else await expect(both).rejects.toThrow("No database selected. Give the pool a `database`");
    });

    it("is told of a missing table by an error that prints the SQL", async () => {
      const missing = mysql(pool, { table: "nowhere" }).load(["key"]);
      await expect(missing).rejects.toMatchObject({ code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE") });
    });
  });

  suiteOf(`a store in ${name}`, () => mysql(pool));

  for (const level of ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]) {
    severalLimitsRaceCase(`a store in ${name} with ${level} transactions`, () =>
      Array.from({ length: 4 }, () => {
        const made = createPool({ host: server.host, port: server.port, user: "root", database: "test" });
        onTestFinished(() => made.end());
        made.on("connection", (connection) => connection.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${level}`));
        return mysql(made);
      }),
    );
  }

  undoneInsertCase(
    `the driver for ${name}`,
    () => mysql(pool),
    async (keys) => {
      const holder = await pool.getConnection();
      onTestFinished(() => holder.release());
      await holder.beginTransaction();
      for (const key of keys) await holder.query("INSERT INTO floodgate VALUES (?, 1, '1', 1)", [key]);
      return () => holder.rollback();
    },
  );

  permissionsCase(`a store in ${name}`, async (rights) => {
    const user = `user_${Math.random().toString(36).slice(2)}`;
    // In `test`, MariaDB allows everything to everybody.
    await pool.query(`CREATE DATABASE ${user}`);
    await pool.query(mysqlMigration({ table: `${user}.floodgate` }));
    await pool.query(`CREATE USER ${user}`);
    const given = Array.isArray(rights) ? rights : ["SELECT", "INSERT", "UPDATE", "DELETE"];
    if (rights !== "no schema") await pool.query(`GRANT ${given} ON ${user}.floodgate TO ${user}`);
    const made = createPool({ host: server.host, port: server.port, user, database: user });
    onTestFinished(() => made.end());
    if (rights === "read-only") made.on("connection", (connection) => connection.query("SET SESSION TRANSACTION READ ONLY"));
    return mysql(made, { table: `${user}.floodgate` });
  });

  clientOptionsCase(`a store in ${name}`, async () => {
    const poolWith = (options: PoolOptions) => {
      const made = createPool({ host: server.host, port: server.port, user: "root", database: "test", ...options });
      onTestFinished(() => made.end());
      return made;
    };
    const driverWith = (options: PoolOptions) => mysql(poolWith(options));
    const callbacks = createCallbackPool({ host: server.host, port: server.port, user: "root", database: "test" });
    onTestFinished(() => callbacks.promise().end());
    // As the connector of MariaDB: it answers no pair, and its numbers are BigInts. MySQL prepares no START TRANSACTION, for one.
    const execute: MysqlExecutor["execute"] = async (sql, values) => {
      expect(sql).toMatch(/^(SELECT|INSERT|UPDATE|DELETE)\b/);
      const [answer] = (await pool.execute(sql, values)) as unknown as [{ insertId?: number }];
      return answer.insertId === undefined ? answer : { ...answer, insertId: BigInt(answer.insertId) };
    };
    const connector = { execute, getConnection: () => pool.getConnection() };
    const silent = { ...connector, execute: async () => undefined };
    const uncommitted = poolWith({});
    uncommitted.on("connection", (connection) => connection.query("SET autocommit = 0"));
    const buffers: PoolOptions = { typeCast: (field, next) => (field.type === "VAR_STRING" ? field.buffer() : next()) };
    const big = { supportBigNumbers: true, bigNumberStrings: true };
    const decides = [
      {},
      big,
      { decimalNumbers: true },
      { namedPlaceholders: true },
      { timezone: "+05:00", dateStrings: true },
      { charset: "latin1" },
      { flags: ["-FOUND_ROWS"] },
    ];
    return {
      decides: [...decides.map(driverWith), mysql(callbacks), mysql(connector)],
      refused: [driverWith({ rowsAsArray: true }), mysql(silent), driverWith(buffers), mysql(uncommitted)],
    };
  });

  it("its time goes on while the clocks of its time zone are set back", async () => {
    for (const statement of zone.split(";\n")) await pool.query(statement);
    const connection = await pool.getConnection();
    onTestFinished(() => connection.destroy());
    await connection.query("SET time_zone = 'Floodgate/Autumn'");
    // SYSDATE tells only the real time.
    const execute = (sql: string, values?: unknown) => connection.execute(sql.replaceAll("SYSDATE", "NOW"), values as never);
    const driver = mysql({ execute, getConnection: () => pool.getConnection() });
    for (const seconds of [-3601, -1800, -1, 0, 1, 1800, 3599, 3601]) {
      await connection.query(`SET timestamp = ${changesAt + seconds}.25`);
      expect(await driver.load(["key"])).toMatchObject({ nowMs: (changesAt + seconds) * 1000 + 250 });
    }
  });
});
