import type { Change, DecideAgain, Loaded, Row, Swapped, ValidTime } from "./driver.js";
import { changedRows, keysOf, newVersion } from "./table.js";

interface Statement {
  all(...values: (string | number | null)[]): unknown[];
  run(...values: (string | number | null)[]): unknown;
}

/** Rows of a SQLite that answers at once. */
export interface SqliteRows {
  load(keys: readonly string[]): Loaded;
  swap(changes: readonly Change[], valid: ValidTime, decideAgain?: DecideAgain): Loaded & Swapped;
  sweep(most: number): void;
}

/** Works on a table. The caller makes a transaction of each call. */
export function sqliteRows(database: { prepare(sql: string): Statement }, table: string): SqliteRows {
  /** Prepared at the first call: the table may be made after the driver. */
  let statements: { readonly [name in "find" | "write" | "sweep"]: Statement } | undefined;

  function prepared() {
    statements ??= {
      find: database.prepare(`SELECT version, value FROM ${table} WHERE key = ?`),
      write: database.prepare(`INSERT OR REPLACE INTO ${table} (key, version, value, ends_ms) VALUES (?, ?, ?, ?)`),
      sweep: database.prepare(`DELETE FROM ${table} WHERE key IN (SELECT key FROM ${table} WHERE ends_ms < ? ORDER BY ends_ms LIMIT ?)`),
    };
    return statements;
  }

  function load(keys: readonly string[]): Loaded {
    const { find } = prepared();
    return { nowMs: Date.now(), rows: keys.map((key) => rowOf(find.all(key))) };
  }

  function swap(changes: readonly Change[], { fromMs, untilMs }: ValidTime, decideAgain?: DecideAgain): Loaded & Swapped {
    // The clock is read with the lock.
    const { nowMs, rows } = load(keysOf(changes));
    const isSame = changes.every(({ was }, i) => rows[i]?.version === was);
    const writing = isSame ? changes : decideAgain?.({ nowMs, rows });
    if (writing === undefined || nowMs < fromMs || nowMs > untilMs) return { done: false, nowMs, rows };
    const written = writing.map(({ key, was, value, lifeMs }) => {
      if (value === undefined) return { version: was as string, value: "" };
      const version = newVersion();
      prepared().write.run(key, version, value, nowMs + lifeMs);
      return { version, value };
    });
    return { done: true, nowMs, rows: written };
  }

  return { load, swap, sweep: (most: number): void => void prepared().sweep.run(Date.now(), most) };
}

/** @throws Error if the library answers later, or rows in another form: each request would look like the first. */
function rowOf(found: unknown): Row | undefined {
  const [row] = Array.isArray(found) ? found : [{}];
  if (row !== undefined && typeof row.value !== "string") throw changedRows();
  return row;
}
