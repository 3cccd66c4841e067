import type { DatabaseDriver, Loaded } from "./driver.js";
import { lockTimeout } from "./faults.js";
import { sqliteRows } from "./sqlite-rows.js";
import { checkClient, missingTable, type TableOptions, tableOf } from "./table.js";

/** A database of `node:sqlite` (`DatabaseSync`) or better-sqlite3, or your own object around another library that answers at once. */
export interface SqliteDatabase {
  prepare(sql: string): { all(...values: (string | number | null)[]): unknown[]; run(...values: (string | number | null)[]): unknown };
  exec(sql: string): unknown;
}

/** What apps hold besides databases that answer at once, by a property of its own. */
const others = {
  $client: "sqlite(db.$client)",
  parallelize: 'sqlite(new DatabaseSync("limits.db")), of node:sqlite: sqlite3 answers later',
  getDatabaseInstance: 'sqlite(new DatabaseSync("limits.db")), of node:sqlite: sqlite answers later',
};

/** The SQL that makes the table. */
export function sqliteMigration(options: TableOptions = {}): string {
  const table = tableOf("sqliteMigration", options);
  return `CREATE TABLE IF NOT EXISTS ${table} (
  key TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  value TEXT NOT NULL,
  ends_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ${table}_ends ON ${table.split(".").at(-1)} (ends_ms);
`;
}

/** A part of a transaction. */
interface Call {
  readonly run: () => unknown;
  /** Until when it waits for the lock, by `Date.now()`. */
  readonly untilMs: number;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Maximum number of calls in one transaction. */
const maxCalls = 256;
/** The longest pause before the lock is tried again. */
const longestPauseMs = 4;
/** After another process had the lock: how long this one pauses between its transactions. */
const contendedMs = 1000;

/**
 * A driver for SQLite, for the processes of one machine: `databaseStore(sqlite(new DatabaseSync("limits.db")))`. Decisions of one moment share a
 * transaction. While another process has the lock, this one goes on with other work, if `PRAGMA busy_timeout` is 0: that is the default of
 * `node:sqlite`, better-sqlite3 needs `timeout: 0`. Set `PRAGMA journal_mode = WAL` and `PRAGMA synchronous = NORMAL`.
 * @throws FloodgateError if an option is invalid.
 */
export function sqlite(database: SqliteDatabase, options: TableOptions = {}): DatabaseDriver {
  checkClient("sqlite", database, ["prepare", "exec"], 'sqlite(new DatabaseSync("limits.db"))', others);
  const table = tableOf("sqlite", options);
  const rows = sqliteRows(database, table);

  /** Runs calls in one transaction. If another process has the lock, nothing is done, and more calls may join until it is free. */
  function transactions(begin: "BEGIN" | "BEGIN IMMEDIATE") {
    let waiting: Call[] = [];
    let busyMs = Number.NEGATIVE_INFINITY;

    async function work(): Promise<void> {
      do {
        // Also after its own turn: others would never find the lock free if this process took it again at once.
        if (performance.now() - busyMs < contendedMs) await new Promise((resolve) => setTimeout(resolve, Math.random() * longestPauseMs));
        else await undefined;
        const calls = waiting.slice(0, maxCalls);
        let left: Call[] = [];
        try {
          const answers = runAll(calls);
          for (const [i, { resolve }] of calls.entries()) resolve(answers[i]);
        } catch (error) {
          const text = error instanceof Error ? error.message : "";
          const isBusy = text.includes("database is locked");
          if (isBusy) busyMs = performance.now();
          left = calls.filter(({ untilMs }) => isBusy && Date.now() + longestPauseMs < untilMs);
          const reason = isBusy
            ? lockTimeout(error)
            : text.includes("no such table")
              ? missingTable(table, sqliteMigration(options), error)
              : error;
          for (const call of calls) if (!left.includes(call)) call.reject(reason);
        }
        waiting = [...left, ...waiting.slice(calls.length)];
      } while (waiting.length > 0);
    }

    function runAll(calls: readonly Call[]): unknown[] {
      database.exec(begin);
      try {
        const answers = calls.map(({ run }) => run());
        database.exec("COMMIT");
        return answers;
      } catch (error) {
        try {
          database.exec("ROLLBACK");
        } catch {
          // SQLite has done it already: the disk is full, say.
        }
        throw error;
      }
    }

    return <T>(run: () => T, untilMs: number): Promise<T> =>
      new Promise((resolve, reject) => {
        waiting.push({ run, untilMs, resolve: resolve as Call["resolve"], reject });
        if (waiting.length === 1) void work();
      });
  }

  const read = transactions("BEGIN");
  const write = transactions("BEGIN IMMEDIATE");

  return {
    scope: database,
    load: (keys, untilMs = Date.now()) => read(() => rows.load(keys), untilMs),
    swap(first, valid, decideAgain) {
      let changes = first;
      const again = decideAgain && ((loaded: Loaded) => (changes = decideAgain(loaded)));
      return write(() => rows.swap(changes, valid, again), valid.untilMs);
    },
    sweep: rows.sweep,
  };
}
