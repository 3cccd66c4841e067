import type { Change, DatabaseDriver, Loaded, Swapped, ValidTime } from "./driver.js";
import { type Answer, checkClient, codeOf, keysOf, loadedOf, missingTable, newVersion, type TableOptions, tableOf } from "./table.js";

/** What runs a prepared statement: a pool of mysql2, or a connection. */
export interface MysqlExecutor {
  // biome-ignore lint/suspicious/noExplicitAny: the type of mysql2 is narrower than what it takes
  execute(sql: string, values?: any): PromiseLike<unknown>;
}

/** A pool of `mysql2/promise`, or of `mariadb`. */
export interface MysqlPool extends MysqlExecutor {
  /** Never called. It tells a pool from one connection, whose transactions would hold our changes. */
  getConnection(): PromiseLike<unknown>;
}

/** What apps hold besides pools, by a property of its own. */
const others = {
  $client: "mysql(db.$client)",
  createQueryRunner: "mysql(dataSource.driver.pool)",
  of: 'mysql(cluster.of("PRIMARY")): only one server can count',
};
const noTable = "ER_NO_SUCH_TABLE";
/**
 * Another change came first, and this one changed no count. ER_CHECKREAD is MariaDB's, for a row that has changed since its snapshot.
 * ER_DATA_OUT_OF_RANGE is what our statements raise if they are late, or if a row is not as expected.
 */
const overtaken: ReadonlySet<unknown> = new Set(["ER_DUP_ENTRY", "ER_LOCK_DEADLOCK", "ER_CHECKREAD", "ER_DATA_OUT_OF_RANGE"]);

/** The SQL that makes the table, for MySQL 8 and MariaDB 10.6 and later. */
export function mysqlMigration(options: TableOptions = {}): string {
  return `CREATE TABLE IF NOT EXISTS ${tableOf("mysqlMigration", options)} (
  id varbinary(700) NOT NULL PRIMARY KEY,
  version bigint NOT NULL,
  value longtext CHARACTER SET ascii NOT NULL,
  ends_ms bigint NOT NULL,
  KEY ends (ends_ms)
) ENGINE = InnoDB;
`;
}

/**
 * A driver for MySQL 8 and MariaDB 10.6 and later: `databaseStore(mysql(createPool(url)))`, with `mysql2/promise`. One row is one statement;
 * several rows are one too, and another that inserts those that are new. It works with each isolation level. `mysqlMigration()` has the SQL of
 * its table.
 * @throws FloodgateError if an option is invalid.
 */
export function mysql(client: MysqlPool | { promise(): MysqlPool }, options: TableOptions = {}): DatabaseDriver {
  checkClient(
    "mysql",
    client,
    ["execute", "getConnection"],
    "mysql(createPool(process.env.DATABASE_URL)), with createPool of mysql2/promise",
    others,
  );
  const pool = "promise" in client ? client.promise() : client;
  const table = tableOf("mysql", options);
  // SYSDATE tells the time after locks, but in the session's time zone, which has some hours twice. So it only tells how long the statement has run.
  const nowMs = "((TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))) DIV 1000)";
  // An UPDATE answers no row. But it answers the number that was last given to LAST_INSERT_ID.
  const noted = `LAST_INSERT_ID(${nowMs})`;
  const update = `UPDATE ${table} SET version = ?, value = ?, ends_ms = ${noted} + ? WHERE id = ? AND version = ? AND ${nowMs} BETWEEN ? AND ?`;
  // An insert waits if another transaction has inserted the same row and may yet undo it. So the time is checked again in a last row, which is not
  // inserted: the largest integer plus 1 is an error in each SQL mode, and undoes the statement.
  const inTime = `NOT (~0 + (${nowMs} > ?))`;
  const insert = `INSERT INTO ${table} (version, value, ends_ms, id) SELECT ?, ?, ${noted} + ?, ? FROM (SELECT 0 AS is_last UNION ALL SELECT 1) twice
WHERE IF(is_last, ${inTime}, ${nowMs} BETWEEN ? AND ?)`;
  const given = `JSON_TABLE(?, '$[*]' COLUMNS (
  id varchar(700) CHARACTER SET utf8mb4 PATH '$[0]', version bigint PATH '$[1]', value longtext CHARACTER SET utf8mb4 PATH '$[2]', life bigint PATH '$[3]', was bigint PATH '$[4]'
)) c`;
  const insertAll = `INSERT INTO ${table} (id, version, value, ends_ms) SELECT id, was, '', life + ${nowMs} FROM ${given} WHERE IF(id IS NULL, ${inTime}, TRUE)`;
  // One statement, because a process that stops between several would keep its locks. A row that is not as expected is an error, which undoes all.
  const updateAll = `UPDATE ${given} LEFT JOIN ${table} f ON f.id = CONVERT(c.id USING binary)
SET f.version = c.version, f.value = COALESCE(c.value, f.value), f.ends_ms = IF(c.value IS NULL, f.ends_ms, c.life + ${nowMs})
WHERE IF(f.version <=> c.was AND ${noted} BETWEEN ? AND ?, TRUE, ~0 + (c.life IS NOT NULL))`;

  async function ask(sql: string, values?: unknown[]): Promise<unknown> {
    try {
      const answer = await pool.execute(sql, values);
      // mysql2 answers a pair, and mariadb the first of it.
      return Array.isArray(answer) && answer[0]?.now === undefined ? answer[0] : answer;
    } catch (error) {
      if (codeOf(error) === noTable) throw missingTable(table, mysqlMigration(options), error);
      throw error;
    }
  }

  async function read(keys: readonly string[]): Promise<Loaded> {
    // The number of placeholders is a power of two, so that few statements are prepared.
    const filled = [...keys];
    while (filled.length < 2 ** Math.ceil(Math.log2(keys.length))) filled.push(keys[0] as string);
    const found = `SELECT id, version, value FROM ${table} WHERE id IN (${filled.map(() => "?").join()})`;
    const sql = `SELECT ${nowMs} AS now, @@autocommit AS autocommit, CONVERT(f.id USING utf8mb4) AS \`key\`, CAST(f.version AS char) AS version, f.value FROM (SELECT 1) one LEFT JOIN (${found}) f ON TRUE`;
    const answers = (await ask(sql, filled)) as (Answer & { readonly autocommit: unknown })[];
    const loaded = loadedOf(keys, answers);
    if (Number(answers[0]?.autocommit) === 1) return loaded;
    throw new Error(
      "The connections have `autocommit` off, so that no change would be kept. Turn it on, or give Floodgate a pool of its own",
    );
  }

  async function swapOne({ key, was, value, lifeMs }: Change, { fromMs, untilMs }: ValidTime): Promise<Swapped> {
    const version = newVersion();
    const values = [version, value, lifeMs, key, was ?? untilMs, fromMs, untilMs];
    const { affectedRows, insertId } = (await ask(was === undefined ? insert : update, values)) as Record<string, number>;
    if (affectedRows !== 1) return { ...(await read([key])), done: false };
    return { done: true, nowMs: Number(insertId), rows: [{ version, value: value as string }] };
  }

  async function swapAll(changes: readonly Change[], { fromMs, untilMs }: ValidTime): Promise<Swapped> {
    const rows = changes.map(({ was, value }) => ({ version: value === undefined ? (was as string) : newVersion(), value: value ?? "" }));
    const all = changes.map(({ key, was = newVersion(), value, lifeMs }, i) => [key, rows[i]?.version, value, lifeMs, was]);
    // New rows are first inserted empty, which decides nothing.
    const added = all.filter((_, i) => changes[i]?.was === undefined);
    if (added.length > 0) await ask(insertAll, [JSON.stringify([...added, [null]]), untilMs]);
    const { insertId } = (await ask(updateAll, [JSON.stringify(all), fromMs, untilMs])) as Record<string, number>;
    return { done: true, nowMs: Number(insertId), rows };
  }

  return {
    scope: client,
    load: read,
    async swap(changes, valid) {
      try {
        return await (changes.length === 1 ? swapOne(changes[0] as Change, valid) : swapAll(changes, valid));
      } catch (error) {
        if (!overtaken.has(codeOf(error))) throw error;
        return { ...(await read(keysOf(changes))), done: false };
      }
    },
    sweep: (most) => ask(`DELETE FROM ${table} WHERE ends_ms < ${nowMs} ORDER BY ends_ms LIMIT ${most}`),
  };
}
