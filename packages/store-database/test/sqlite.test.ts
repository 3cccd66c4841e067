import { beforeAll } from "vitest";

import { type SqliteDatabase, sqlite, sqliteMigration } from "../src/sqlite.js";
import { openSqlite } from "./open-sqlite.js";
import { suiteOf } from "./suite.js";

let database: SqliteDatabase;

beforeAll(() => {
  database = openSqlite(":memory:");
  database.exec(sqliteMigration());
});

suiteOf("a store in SQLite", () => sqlite(database));
