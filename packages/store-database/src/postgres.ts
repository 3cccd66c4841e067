import type { Change, DatabaseDriver, Loaded, Row, Swapped, ValidTime } from "./driver.js";
import { missingTable, newVersion, type TableOptions, tableOf } from "./table.js";

/** A client of Postgres: a `Pool` of pg or Neon, PGlite, or your own function around another library. */
export interface PostgresClient {
  query(text: string, values: unknown[]): PromiseLike<{ rows: unknown[] } | unknown[]>;
}

export interface PostgresOptions extends TableOptions {
  /**
   * Whether statements are prepared once for each connection. Default: with a client of pg's kind (it has `connect`). Behind a PgBouncer that
   * cannot do it, the driver notices and goes on without.
   */
  prepare?: boolean;
}

/** How the server says that it has not done anything, because another transaction came first. */
const overtaken: ReadonlySet<unknown> = new Set(["23505", "40001", "40P01"]);
/** A prepared statement is missing, or is there already: a pooler has changed the connection. Nothing was done. */
const unprepared: ReadonlySet<unknown> = new Set(["26000", "42P05"]);
const noTable = "42P01";

/** The SQL that makes the table. `unlogged`: faster, but a crash of the server empties it, and replicas do not have it. */
export function postgresMigration(options: TableOptions & { unlogged?: boolean } = {}): string {
  const table = tableOf("postgresMigration", options);
  return `CREATE ${options.unlogged === true ? "UNLOGGED " : ""}TABLE IF NOT EXISTS ${table} (
  key text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  value text NOT NULL,
  ends_ms bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX IF NOT EXISTS ${table.replace(".", "_")}_ends ON ${table} (ends_ms);
`;
}

/**
 * A driver for Postgres 11 and later: `databaseStore(postgres(new Pool()))`. It works with each isolation level, and behind PgBouncer in
 * transaction mode. `postgresMigration()` has the SQL of its table.
 * @throws FloodgateError if an option is invalid.
 */
export function postgres(client: PostgresClient, options: PostgresOptions = {}): DatabaseDriver {
  const table = tableOf("postgres", options);
  let prepare = options.prepare ?? typeof (client as { connect?: unknown }).connect === "function";
  const nowMs = "floor(extract(epoch FROM clock_timestamp()) * 1000)";

  // In whole minutes, so that most changes leave the index alone: Postgres then updates a row in place.
  const ends = (life: string): string => `(ceil((${nowMs} + ${life}) / 60000) * 60000)::bigint`;

  const sql = {
    load: `SELECT ${nowMs}::float8 AS now, f.key, f.version::text, f.value
FROM (SELECT) one LEFT JOIN ${table} f ON f.key = ANY ($1::text[])`,
    update: `UPDATE ${table} SET version = $2, value = $3, ends_ms = ${ends("$4")}
WHERE key = $1 AND version = $5 AND ${nowMs} BETWEEN $6 AND $7 RETURNING ${nowMs}::float8 AS now`,
    insert: `INSERT INTO ${table} (key, version, value, ends_ms) SELECT $1, $2, $3, ${ends("$4")}
WHERE ${nowMs} BETWEEN $5 AND $6 ON CONFLICT DO NOTHING RETURNING ${nowMs}::float8 AS now`,
    // Rows are locked in one order, so that no two changes wait for each other. The clock is read after that.
    swap: `WITH change AS (
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[]) AS c (key, was, version, value, life)
), held AS MATERIALIZED (
  SELECT key, version, value FROM ${table} WHERE key = ANY ($1::text[]) ORDER BY key FOR UPDATE
), verdict AS MATERIALIZED (
  SELECT now, same AND now BETWEEN $6::float8 AND $7::float8 AS done FROM (
    SELECT bool_and(c.was IS NOT DISTINCT FROM h.version) AS same, ${nowMs}::float8 AS now FROM change c LEFT JOIN held h USING (key)
  ) compared
), updated AS (
  UPDATE ${table} f SET version = c.version, value = c.value, ends_ms = ${ends("c.life")} FROM change c, verdict v
  WHERE v.done AND f.key = ANY ($1::text[]) AND f.key = c.key AND c.was IS NOT NULL AND c.value IS NOT NULL
), inserted AS (
  INSERT INTO ${table} (key, version, value, ends_ms)
  SELECT c.key, c.version, c.value, ${ends("c.life")} FROM change c, verdict v WHERE v.done AND c.was IS NULL
)
SELECT v.now, v.done, h.key, h.version::text, h.value FROM verdict v LEFT JOIN held h ON NOT v.done`,
    sweep: `DELETE FROM ${table} WHERE key = ANY (ARRAY(
  SELECT key FROM ${table} WHERE ends_ms < ${nowMs} ORDER BY ends_ms LIMIT $1 FOR UPDATE SKIP LOCKED
))`,
  };

  async function ask(name: keyof typeof sql, values: unknown[], prepared = prepare): Promise<Answer[]> {
    const text = sql[name];
    try {
      const statement = { name: `floodgate-1-${name}-${table}`, text, values };
      const answer = await (prepared ? (client as unknown as Preparing).query(statement) : client.query(text, values));
      return (Array.isArray(answer) ? answer : answer.rows) as Answer[];
    } catch (error) {
      const code = codeOf(error);
      if (code === noTable) throw missingTable(table, postgresMigration(options), error);
      if (!prepared || !unprepared.has(code)) throw error;
      prepare = false;
      return ask(name, values);
    }
  }

  async function load(keys: readonly string[]): Promise<Loaded> {
    return loadedOf(keys, await ask("load", [keys]));
  }

  return {
    scope: client,
    load,
    async swap(changes: readonly Change[], { fromMs, untilMs }: ValidTime): Promise<Swapped> {
      const [{ key, was, value = "", lifeMs }] = changes as [Change];
      if (changes.length === 1) {
        const version = newVersion();
        const values = [key, version, value, lifeMs, ...(was === undefined ? [] : [was]), fromMs, untilMs];
        const [written] = await ask(was === undefined ? "insert" : "update", values).catch(nothingIfOvertaken);
        if (written === undefined) return { ...(await load([key])), done: false };
        return { done: true, nowMs: written.now, rows: [{ version, value }] };
      }
      const keys = changes.map(({ key }) => key);
      const written = changes.map(({ was, value }) => (value === undefined ? (was as string) : newVersion()));
      const column = (name: "was" | "value" | "lifeMs") => changes.map((change) => change[name] ?? null);
      try {
        const answers = await ask("swap", [keys, column("was"), written, column("value"), column("lifeMs"), fromMs, untilMs]);
        const done = answers[0]?.done === true;
        const { nowMs, rows } = loadedOf(keys, answers);
        return { done, nowMs, rows: done ? changes.map(({ value = "" }, i) => ({ value, version: written[i] as string })) : rows };
      } catch (error) {
        if (overtaken.has(codeOf(error))) return { ...(await load(keys)), done: false };
        throw error;
      }
    },
    sweep: (most) => ask("sweep", [most]),
  };
}

/** A row of an answer; `key` is null if no row was found. */
interface Answer {
  readonly now: number;
  readonly done?: boolean;
  readonly key: string | null;
  readonly version: string;
  readonly value: string;
}

/** A client of pg's kind. */
interface Preparing {
  query(prepared: { readonly name: string; readonly text: string; readonly values: unknown[] }): PromiseLike<{ rows: unknown[] }>;
}

function loadedOf(keys: readonly string[], answers: readonly Answer[]): Loaded {
  const rows = new Map<string | null, Row>(answers.map(({ key, version, value }) => [key, { version, value }]));
  return { nowMs: (answers[0] as Answer).now, rows: keys.map((key) => rows.get(key)) };
}

function nothingIfOvertaken(error: unknown): [] {
  if (overtaken.has(codeOf(error))) return [];
  throw error;
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | undefined)?.code;
}
