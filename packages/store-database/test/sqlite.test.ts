import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allRuns } from "../../../test/runs.js";

import { type SqliteDatabase, sqlite, sqliteMigration } from "../src/sqlite.js";
import { openSqlite } from "./open-sqlite.js";
import { raceCases } from "./races.js";
import { suiteOf } from "./suite.js";

let database: SqliteDatabase;

beforeAll(() => {
  database = openSqlite(":memory:");
  database.exec(sqliteMigration());
});

describe.runIf(allRuns)("one SQLite file", () => {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-sqlite-"));
  const file = join(folder, "limits.db");
  const shared = openSqlite(file);
  shared.exec("PRAGMA busy_timeout = 60000");
  shared.exec(sqliteMigration());
  afterAll(() => {
    shared.close();
    rmSync(folder, { recursive: true });
  });

  raceCases(() => ({ connection: { database: "sqlite", file }, driver: sqlite(shared) }));
});

it("a missing table is an error that prints the SQL", () => {
  const load = () => sqlite(openSqlite(":memory:")).load(["key"]);
  expect(load).toThrow(expect.objectContaining({ code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE") }));
});

suiteOf("a store in SQLite", () => sqlite(database));
