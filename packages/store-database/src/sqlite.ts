import type { Change, DatabaseDriver, Loaded, Row, Swapped, ValidTime } from "./driver.js";
import { missingTable, newVersion, type TableOptions, tableOf } from "./table.js";

/** A database of `node:sqlite` (`DatabaseSync`) or better-sqlite3, or your own object around another library that answers at once. */
export interface SqliteDatabase {
  prepare(sql: string): { all(...values: (string | number | null)[]): unknown[]; run(...values: (string | number | null)[]): unknown };
  exec(sql: string): unknown;
}

/** The SQL that makes the table. */
export function sqliteMigration(options: TableOptions = {}): string {
  const table = tableOf("sqliteMigration", options);
  return `CREATE TABLE IF NOT EXISTS ${table} (
  key TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  value TEXT NOT NULL,
  ends_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ${table.replace(".", "_")}_ends ON ${table.split(".").at(-1)} (ends_ms);
`;
}

/**
 * A driver for SQLite, for the processes of one machine: `databaseStore(sqlite(new DatabaseSync("limits.db")))`. A change is one transaction
 * that takes the lock at once. Set `PRAGMA journal_mode = WAL` and `PRAGMA busy_timeout` on the database, so that processes wait for each other.
 * @throws FloodgateError if an option is invalid.
 */
export function sqlite(database: SqliteDatabase, options: TableOptions = {}): DatabaseDriver {
  const table = tableOf("sqlite", options);
  /** Prepared at the first call: the table may be made after the driver. */
  let statements: { readonly [name in "find" | "write" | "sweep"]: ReturnType<SqliteDatabase["prepare"]> } | undefined;

  function prepared() {
    if (statements !== undefined) return statements;
    try {
      statements = {
        find: database.prepare(`SELECT version, value FROM ${table} WHERE key = ?`),
        write: database.prepare(`INSERT OR REPLACE INTO ${table} (key, version, value, ends_ms) VALUES (?, ?, ?, ?)`),
        sweep: database.prepare(`DELETE FROM ${table} WHERE key IN (SELECT key FROM ${table} WHERE ends_ms < ? ORDER BY ends_ms LIMIT ?)`),
      };
      return statements;
    } catch (error) {
      if (error instanceof Error && error.message.includes("no such table")) throw missingTable(table, sqliteMigration(options), error);
      throw error;
    }
  }

  function load(keys: readonly string[]): Loaded {
    const { find } = prepared();
    return { nowMs: Date.now(), rows: keys.map((key) => find.all(key)[0] as Row | undefined) };
  }

  return {
    scope: database,
    load,
    swap(changes: readonly Change[], { fromMs, untilMs }: ValidTime): Swapped {
      const { write } = prepared();
      const keys = changes.map(({ key }) => key);
      database.exec("BEGIN IMMEDIATE");
      try {
        // The clock is read with the lock.
        let { nowMs, rows } = load(keys);
        const done = nowMs >= fromMs && nowMs <= untilMs && changes.every(({ was }, i) => rows[i]?.version === was);
        if (done) {
          rows = changes.map(({ key, was, value, lifeMs }) => {
            if (value === undefined) return { version: was as string, value: "" };
            const version = newVersion();
            write.run(key, version, value, nowMs + lifeMs);
            return { version, value };
          });
        }
        database.exec("COMMIT");
        return { done, nowMs, rows };
      } catch (error) {
        database.exec("ROLLBACK");
        throw error;
      }
    },
    sweep: (most) => void prepared().sweep.run(Date.now(), most),
  };
}
