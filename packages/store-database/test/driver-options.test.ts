import { expect, it } from "vitest";
import { d1, d1Migration } from "../src/d1.js";
import { durableObjects } from "../src/durable-object.js";
import { libsql, libsqlMigration } from "../src/libsql.js";
import { mysql, mysqlMigration } from "../src/mysql.js";
import { postgres, postgresMigration } from "../src/postgres.js";
import { sqlite, sqliteMigration } from "../src/sqlite.js";

type Make = (...args: unknown[]) => unknown;

const nothing = (): undefined => undefined;

/** Each driver that may import core, with a client that has its methods. */
const drivers = Object.entries({
  postgres: [postgres, { query: nothing }],
  mysql: [mysql, { execute: nothing, getConnection: nothing }],
  sqlite: [sqlite, { prepare: nothing, exec: nothing }],
  libsql: [libsql, { batch: nothing }],
  d1: [d1, { prepare: nothing, batch: nothing }],
  durableObjects: [durableObjects, { idFromName: nothing, get: nothing }],
}) as unknown as [name: string, [make: Make, client: object]][];

const secret = "postgres://user:secret@127.0.0.1/limits";
const given = [undefined, null, 5, secret, {}, [], nothing, Promise.resolve({})];

it.each(drivers)("%s refuses a value that is no client when it is called, and does not show it", (name, [make, client]) => {
  for (const value of given) {
    const wrong = () => make(value);
    expect(wrong).toThrow(
      expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION", message: expect.stringMatching(/ Write \w+\(.+\)/) }),
    );
    expect(wrong).toThrow(expect.objectContaining({ message: expect.not.stringContaining("secret") }));
  }
  for (const method of Object.keys(client)) expect(() => make({ ...client, [method]: undefined })).toThrow(`${name} takes the client`);
  expect(() => make(client)).not.toThrow();
});

/** What an app holds, with the methods that it shares with a client. */
const held: [name: string, make: unknown, property: string, instead: string][] = [
  ["drizzle for Postgres", postgres, "$client", "postgres(db.$client)"],
  ["drizzle for MySQL", mysql, "$client", "mysql(db.$client)"],
  ["drizzle for SQLite", sqlite, "$client", "sqlite(db.$client)"],
  ["drizzle for libSQL", libsql, "$client", "libsql(db.$client)"],
  ["Prisma", postgres, "$queryRawUnsafe", "prisma.$queryRawUnsafe(text, ...values)"],
  ["Kysely", postgres, "executeQuery", "postgres(pool), with the pool of Kysely's"],
  ["Sequelize", postgres, "getQueryInterface", "sequelize.query(text, { bind })"],
  ["knex", postgres, "queryBuilder", "await knex.client.acquireConnection()"],
  ["slonik", postgres, "oneFirst", "pool.query({ ...sql.unsafe``, sql: text, values })"],
  ["a pool of mysql2", postgres, "getConnection", "mysql(pool)"],
  ["TypeORM for MySQL", mysql, "createQueryRunner", "mysql(dataSource.driver.pool)"],
  ["a PoolCluster", mysql, "of", "mysql(cluster.of("],
  ["sqlite3", sqlite, "parallelize", "sqlite(new DatabaseSync("],
  ["sqlite", sqlite, "getDatabaseInstance", "sqlite(new DatabaseSync("],
];

it.each(held)("tells what to write with %s", (_name, make, property, instead) => {
  const methods = drivers.find(([, [each]]) => each === make)?.[1][1];
  const value = Object.assign(nothing.bind(null), methods, { [property]: nothing });
  expect(() => (make as Make)(value)).toThrow(expect.objectContaining({ code: "FLOODGATE_INVALID_OPTION" }));
  expect(() => (make as Make)(value)).toThrow(instead);
});

it("tells that a client is a promise", () => {
  expect(() => libsql(Promise.resolve({}) as never)).toThrow(
    "libsql takes the client of a database, but what was given (a promise: await it first) has no method `batch`. Write libsql(createClient(",
  );
});

it.each(drivers)("%s refuses unknown options and options that are no object", (name, [make, client]) => {
  expect(() => make(client, { tabel: "limits" })).toThrow(`${name} has no option \`tabel\`.`);
  for (const options of [null, "limits", 5]) expect(() => make(client, options)).toThrow(`${name} takes an object of options`);
});

it.each(Object.entries({ postgresMigration, mysqlMigration, sqliteMigration, libsqlMigration, d1Migration }))(
  "%s refuses unknown options",
  (_name, migration) => {
    expect(() => migration({ tabel: "limits" } as never)).toThrow("Migration has no option `tabel`. Did you mean `table`?");
    expect(migration({ table: "limits" })).toContain("limits");
  },
);

it("refuses a wrong value of an option of postgres", () => {
  expect(() => postgresMigration({ unlogged: "false" as never })).toThrow("postgresMigration: `unlogged` must be true or false");
  expect(() => postgres({ query: nothing } as never, { prepare: "no" as never })).toThrow("postgres: `prepare` must be true or false");
});
