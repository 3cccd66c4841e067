import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { databaseStore } from "../src/index.js";
import { type SqliteDatabase, sqlite, sqliteMigration } from "../src/sqlite.js";
import { isNative, openSqlite } from "./open-sqlite.mjs";
import { clientKillCase, raceCases } from "./races.js";
import { clientOptionsCase, suiteOf } from "./suite.js";

let database: SqliteDatabase;

beforeAll(() => {
  database = openSqlite(":memory:");
  database.exec(sqliteMigration());
});

describe.runIf(allRuns || isNative)("one SQLite file", () => {
  let folder: string;
  let file: string;
  let shared: SqliteDatabase & { close(): void };
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "floodgate-sqlite-"));
    file = join(folder, "limits.db");
    shared = openSqlite(file);
    shared.exec(sqliteMigration());
  });
  afterAll(() => {
    shared.close();
    rmSync(folder, { recursive: true });
  });

  const target = () => ({ connection: { database: "sqlite", file }, driver: sqlite(shared) });
  if (allRuns) raceCases(target);
  // The lock of node-sqlite3-wasm outlives its process.
  if (isNative) clientKillCase(target);
});

it("a missing table is an error that prints the SQL", async () => {
  const missing = sqlite(openSqlite(":memory:")).load(["key"]);
  await expect(missing).rejects.toMatchObject({ code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE") });
});

it("the table may be in an attached database", async () => {
  const attached = openSqlite(":memory:");
  attached.exec(`ATTACH ':memory:' AS limits; ${sqliteMigration({ table: "limits.floodgate" })}`);
  expect((await sqlite(attached, { table: "limits.floodgate" }).load(["key"])).rows).toEqual([undefined]);
});

it("a full disk is told by SQLite's own error", async () => {
  const full = openSqlite(":memory:");
  full.exec(sqliteMigration());
  full.exec("PRAGMA max_page_count = 4");
  const change = { key: "key", was: undefined, value: "x".repeat(50_000), lifeMs: 60_000 };
  const swapped = sqlite(full).swap([change], { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER });
  await expect(swapped).rejects.toThrow("database or disk is full");
});

it("a database that may not be written is told by SQLite's own error, without advice for servers", async () => {
  const read = openSqlite(":memory:");
  read.exec(`${sqliteMigration()}; PRAGMA query_only = 1`);
  const decided = databaseStore(sqlite(read)).consume(createLimit("read", fixedWindow({ limit: 5, window: "1h" })), "key", 1, 60_000);
  await expect(decided).rejects.toThrow(/could not decide: attempt to write a readonly database$/);
});

it("while another connection has the lock, a decision waits without blocking, and fails at its deadline with nothing charged", async () => {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-sqlite-"));
  const [ours, other] = [openSqlite(join(folder, "limits.db")), openSqlite(join(folder, "limits.db"))];
  try {
    other.exec(sqliteMigration());
    const limit = createLimit("locked", fixedWindow({ limit: 5, window: "365d" }));
    const store = databaseStore(sqlite(ours));
    await store.consume(limit, "key", 1, 60_000);
    other.exec("BEGIN EXCLUSIVE");
    const late = store.consume(limit, "key", 1, 50);
    await expect(late).rejects.toMatchObject({ code: expect.stringMatching(/_TIMEOUT$/) });
    const patient = store.consume(limit, "key", 1, 60_000);
    await new Promise((resolve) => setTimeout(resolve, 20));
    other.exec("COMMIT");
    expect(await patient).toMatchObject({ allowed: true, used: 2 });
  } finally {
    ours.close();
    other.close();
    rmSync(folder, { recursive: true });
  }
});

suiteOf("a store in SQLite", () => sqlite(database));

clientOptionsCase("a store in SQLite", async () => {
  const answering = (change: (rows: unknown[]) => unknown): SqliteDatabase => ({
    exec: (sql) => database.exec(sql),
    prepare(sql) {
      const statement = database.prepare(sql);
      return { run: (...values) => statement.run(...values), all: (...values) => change(statement.all(...values)) as unknown[] };
    },
  });
  // As `returnArrays` of node:sqlite, and as sqlite3, which answers later.
  const refused = [answering((rows) => rows.map((row) => Object.values(row as object))), answering(() => ({}))];
  return { decides: [sqlite(database)], refused: refused.map((each) => sqlite(each)) };
});
