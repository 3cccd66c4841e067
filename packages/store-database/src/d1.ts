import { functionOrNothing } from "@floodgate/core/store";
import type { DatabaseDriver, Swap, Swapped, Version } from "./driver.js";
import { sqliteMigration } from "./sqlite.js";
import { type Answer, checkClient, keysOf, loadedOf, missingTable, newVersion, type TableOptions, tableOf } from "./table.js";

/** A database of Cloudflare D1. `batch` is one transaction. */
export interface D1Database<S = unknown> {
  prepare(sql: string): { bind(...values: (string | number)[]): S };
  batch(statements: S[]): PromiseLike<readonly { readonly results: readonly unknown[] }[]>;
}

export interface WorkersOptions {
  /**
   * `waitUntil` of `cloudflare:workers`. With it, decisions that several requests of an isolate share do not fail if the client of one of them
   * disconnects.
   */
  waitUntil?: (work: Promise<unknown>) => void;
}

/** The SQL that makes the table. */
export const d1Migration: (options?: TableOptions) => string = sqliteMigration;

const nowMs = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";

/**
 * A driver for Cloudflare D1: `databaseStore(d1(env.DB))`. A change is one batch, which D1 runs as a transaction. D1's clock decides.
 * `d1Migration()` has the SQL of its table.
 * @throws FloodgateError if an option is invalid.
 */
export function d1<S>(database: D1Database<S>, options: TableOptions & WorkersOptions = {}): DatabaseDriver {
  checkClient("d1", database, ["prepare", "batch"], "d1(env.DB)");
  const table = tableOf("d1", options, ["waitUntil"]);
  const { waitUntil } = options;
  functionOrNothing("d1", "waitUntil", waitUntil, "waitUntil");
  const sql = {
    // The time has a row of its own, so it is returned even if no key has a row.
    load: `SELECT ${nowMs} AS now, f.key, f.version, f.value FROM (SELECT 1) LEFT JOIN ${table} f ON f.key IN (SELECT value FROM json_each(?1))`,
    // Each change is [key, was, version, value, life].
    swap: `INSERT OR REPLACE INTO ${table} (key, version, value, ends_ms)
SELECT c.value ->> 0, c.value ->> 2, c.value ->> 3, ${nowMs} + (c.value ->> 4) FROM json_each(?1) c
WHERE c.value ->> 3 IS NOT NULL AND ${nowMs} BETWEEN ?2 AND ?3 AND NOT EXISTS (
  SELECT 1 FROM json_each(?1) e LEFT JOIN ${table} f ON f.key = e.value ->> 0 WHERE f.version IS NOT e.value ->> 1
)`,
    sweep: `DELETE FROM ${table} WHERE key IN (SELECT key FROM ${table} WHERE ends_ms < ${nowMs} ORDER BY ends_ms LIMIT ?1)`,
  };

  /** Runs statements in one transaction, and returns the rows of each. */
  async function ask(statements: S[]): Promise<readonly Answer[][]> {
    try {
      return (await database.batch(statements)).map(({ results }) => results as Answer[]);
    } catch (error) {
      if (error instanceof Error && error.message.includes("no such table")) throw missingTable(table, d1Migration(options), error);
      throw error;
    }
  }

  const loading = (keys: readonly string[]): S => database.prepare(sql.load).bind(JSON.stringify(keys));

  /** Each change has its own condition. */
  async function swapMany(swaps: readonly Swap[]): Promise<Swapped[]> {
    const versions: (Version | undefined)[][] = [];
    const statements = swaps.flatMap(({ changes, valid: { fromMs, untilMs } }) => {
      const made = changes.map(({ was, value }) => (value === undefined ? was : newVersion()));
      versions.push(made);
      const rows = changes.map(({ key, was, value, lifeMs }, i) => [key, was ?? null, made[i], value ?? null, lifeMs]);
      return [database.prepare(sql.swap).bind(JSON.stringify(rows), fromMs, untilMs), loading(keysOf(changes))];
    });
    const answers = await ask(statements);
    return swaps.map(({ changes }, i) => {
      const loaded = loadedOf(keysOf(changes), answers[2 * i + 1] as Answer[]);
      // No other write has these versions.
      return { ...loaded, done: loaded.rows.every((row, at) => row?.version === versions[i]?.[at]) };
    });
  }

  return {
    scope: database,
    waitUntil,
    load: async (keys) => loadedOf(keys, (await ask([loading(keys)]))[0] as Answer[]),
    swap: async (changes, valid) => (await swapMany([{ changes, valid }]))[0] as Swapped,
    swapMany,
    sweep: (most) => ask([database.prepare(sql.sweep).bind(most)]),
  };
}
