import { flag } from "@floodgate/core/store";
import type { Change, DatabaseDriver, Loaded, Swap, Swapped, ValidTime, Version } from "./driver.js";
import {
  type Answer,
  changedRows,
  checkClient,
  codeOf,
  keysOf,
  loadedOf,
  missingTable,
  newVersion,
  type TableOptions,
  tableOf,
  timeOf,
} from "./table.js";

/** A client of Postgres: a `Pool` of pg or Neon, PGlite, or your own function around another library. */
export interface PostgresClient {
  query(text: string, values: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] } | readonly unknown[]>;
}

/** What postgres.js and Bun call `sql`. */
export interface PostgresSql {
  // biome-ignore lint/suspicious/noExplicitAny: the type of postgres.js is narrower than what it takes
  unsafe(text: string, values?: any, options?: any): PromiseLike<any>;
}

export interface PostgresOptions extends TableOptions {
  /**
   * Whether statements are prepared once for each connection. Default: with a client of pg's kind (it has `connect`), and with `sql`. Behind a
   * PgBouncer that cannot do it, the driver notices and goes on without.
   */
  prepare?: boolean;
}

/** Error codes: another transaction came first, or the time was over after a wait for one (22012, see `inTime`). Nothing was done. */
const overtaken: ReadonlySet<unknown> = new Set(["22012", "23505", "40001", "40P01"]);
/** Error codes: a prepared statement is missing, or exists already, because a pooler has changed the connection. Nothing was done. */
const unprepared: ReadonlySet<unknown> = new Set(["26000", "42P05"]);
const noTable = "42P01";
/** What apps hold besides clients, by a property of its own. */
const others = {
  $client: "postgres(db.$client)",
  $queryRawUnsafe: "postgres({ query: (text, values) => prisma.$queryRawUnsafe(text, ...values) })",
  executeQuery: "postgres(pool), with the pool of Kysely's PostgresDialect",
  getQueryInterface: "postgres({ query: async (text, bind) => (await sequelize.query(text, { bind }))[0] })",
  queryBuilder:
    "postgres({ async query(text, values) { const client = await knex.client.acquireConnection(); try { return await client.query(text, values); } finally { knex.client.releaseConnection(client); } } })",
  oneFirst: "postgres({ query: (text, values) => pool.query({ ...sql.unsafe``, sql: text, values }) }), with `sql` of slonik",
  getConnection: "mysql(pool)",
};
/** How often a read is tried that serializable transactions end. */
const maxReads = 32;

/** The SQL that makes the table. `unlogged`: faster, but a crash of the server empties it, and replicas do not have it. */
export function postgresMigration(options: TableOptions & { unlogged?: boolean } = {}): string {
  const table = tableOf("postgresMigration", options, ["unlogged"]);
  if (options.unlogged !== undefined) flag("postgresMigration", "unlogged", options.unlogged);
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
 * A driver for Postgres 12 and later: `databaseStore(postgres(new Pool()))`. It works with each isolation level, and behind PgBouncer in
 * transaction mode. `postgresMigration()` has the SQL of its table. A pool of pg needs a listener for "error": without one, pg ends the process
 * when Postgres closes an idle connection.
 * @throws FloodgateError if an option is invalid.
 */
export function postgres(client: PostgresClient | PostgresSql, options: PostgresOptions = {}): DatabaseDriver {
  const isSql = typeof client === "function" && "unsafe" in client && !("query" in client);
  if (!isSql) checkClient("postgres", client, ["query"], "postgres(new Pool({ connectionString: process.env.DATABASE_URL }))", others);
  const table = tableOf("postgres", options, ["prepare"]);
  if (options.prepare !== undefined) flag("postgres", "prepare", options.prepare);
  let prepare = options.prepare ?? (isSql || typeof (client as { connect?: unknown }).connect === "function");
  /** Whether the client says how many rows were written. */
  let counts = false;
  // As a float: `extract` computes with decimals, which takes longer.
  const nowMs = "floor(date_part('epoch', clock_timestamp()) * 1000)";
  // The time, or a division by zero, which undoes the statement. A row is written after a wait for the transaction that had locked or inserted it.
  const inTime = (until: string): string => `${nowMs} / (${nowMs} <= ${until})::int`;

  // Rows are locked and inserted in one order, so that no two statements wait for each other. The clock is read after the locks.
  const swapSql = (onConflict: string): string => `WITH change AS (
  SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::int[]) AS c (key, was, version, value, ends, swap)
), held AS MATERIALIZED (
  SELECT f.key, f.version, f.value FROM change c JOIN ${table} f USING (key) ORDER BY f.key FOR UPDATE OF f
), clock AS MATERIALIZED (
  SELECT count(*), ${nowMs} AS now FROM held
), verdict AS MATERIALIZED (
  SELECT c.swap, bool_and(c.was IS NOT DISTINCT FROM h.version AND k.now BETWEEN ($7::float8[])[c.swap] AND ($8::float8[])[c.swap]) AS done
  FROM change c CROSS JOIN clock k LEFT JOIN held h USING (key) GROUP BY c.swap
), updated AS (
  UPDATE ${table} f SET version = c.version, value = c.value, ends_ms = c.ends
  FROM change c JOIN verdict v USING (swap)
  WHERE v.done AND f.key = c.key AND c.was IS NOT NULL AND c.value IS NOT NULL
), inserted AS (
  INSERT INTO ${table} (key, version, value, ends_ms) SELECT c.key, c.version, c.value, c.ends
  FROM change c JOIN verdict v USING (swap) WHERE v.done AND c.was IS NULL ORDER BY c.key ${onConflict} RETURNING key, ${inTime("(SELECT min(($8::float8[])[swap]) FROM verdict WHERE done)")}
), lost AS (
  SELECT c.swap, v.done, h.* FROM change c JOIN verdict v USING (swap) LEFT JOIN held h USING (key) LEFT JOIN inserted i USING (key)
  WHERE NOT v.done OR c.was IS NULL AND i.key IS NULL
)
SELECT k.now, l.swap, l.done, l.key, l.version::text, l.value FROM clock k LEFT JOIN lost l ON TRUE`;

  // Without RETURNING, Postgres and the client have less to do.
  const update = `UPDATE ${table} SET version = $2, value = $3, ends_ms = $4
WHERE key = $1 AND version = $7 AND ${nowMs} BETWEEN $5 AND $6`;
  const sql = {
    load: `SELECT ${nowMs} AS now, f.key, f.version::text, f.value
FROM (SELECT) one LEFT JOIN ${table} f ON f.key = ANY ($1::text[])`,
    update,
    updateAndTell: `${update} RETURNING ${inTime("$6")} AS now`,
    insert: `INSERT INTO ${table} (key, version, value, ends_ms) SELECT $1, $2, $3, $4
WHERE ${nowMs} BETWEEN $5 AND $6 ON CONFLICT DO NOTHING RETURNING ${inTime("$6")} AS now`,
    swap: swapSql(""),
    swapMany: swapSql("ON CONFLICT DO NOTHING"),
    sweep: `DELETE FROM ${table} WHERE key = ANY (ARRAY(
  SELECT key FROM ${table} WHERE ends_ms < ${nowMs} ORDER BY ends_ms LIMIT $1 FOR UPDATE SKIP LOCKED
))`,
  };

  // Made once: pg looks a name up several times, and a text that is made anew must be hashed first.
  const statements = Object.fromEntries(
    Object.entries(sql).map(([name, text]) => [name, { name: `floodgate-5-${name}-${table}`, text }]),
  ) as Record<keyof typeof sql, Statement>;

  /** The rows of an answer. None also if another transaction came first, unless `orFail`. */
  async function ask(name: keyof typeof sql, values: unknown[], orFail = false, prepared = prepare): Promise<SwapAnswer[]> {
    const text = sql[name];
    try {
      const query = isSql
        ? (client as PostgresSql).unsafe(text, values, { prepare: prepared })
        : prepared
          ? // pg copies each property of the object's own, which takes 1 µs or more. It copies none of an object that inherits them.
            (client as unknown as Preparing).query(Object.create(statements[name]), values)
          : (client as PostgresClient).query(text, values);
      const answer = await query;
      // TypeORM answers the rows, or of an UPDATE a pair with the number of rows.
      const { rows, rowCount }: Answers = Array.isArray(answer) ? { rows: Array.isArray(answer[0]) ? answer[0] : answer } : Object(answer);
      if (!Array.isArray(rows)) throw changedRows();
      counts = typeof rowCount === "number";
      return (name === "update" ? (rowCount === 1 ? [{}] : []) : rows) as SwapAnswer[];
    } catch (error) {
      const code = codeOf(error);
      if (code === noTable) throw missingTable(table, postgresMigration(options), error);
      if (overtaken.has(code) && !orFail) return [];
      if (!prepared || !unprepared.has(code)) throw error;
      prepare = false;
      return ask(name, values, orFail);
    }
  }

  /** Reads rows. Serializable transactions may end a read too: it is then sent again, some times. */
  async function load(keys: readonly string[], left = maxReads): Promise<Loaded> {
    const answers = await ask("load", [arrayOf(keys)], left === 1);
    return answers.length === 0 ? load(keys, left - 1) : loadedOf(keys, answers);
  }

  async function swapOne({ key, was, value = "", lifeMs }: Change, { fromMs, untilMs, isTimeKnown }: ValidTime): Promise<Swapped> {
    const version = newVersion();
    const values: unknown[] = [key, version, value, endsMs(lifeMs, untilMs), fromMs, untilMs];
    if (was !== undefined) values.push(was);
    const name = was === undefined ? "insert" : counts && isTimeKnown === true ? "update" : "updateAndTell";
    const [written] = await ask(name, values);
    if (written === undefined) return { ...(await load([key])), done: false };
    return { done: true, nowMs: name === "update" ? undefined : timeOf(written), rows: [{ version, value }] };
  }

  /** Swaps in one statement. Of several swaps, only those of one change may insert: a lost insert leaves the others of its swap written. */
  async function swapAll(swaps: readonly Swap[]): Promise<Swapped[]> {
    const changes = swaps.flatMap(({ changes, valid }, i) =>
      changes.map(({ key, was, value, lifeMs }) => ({ key, was, value, ends: endsMs(lifeMs, valid.untilMs), swap: i + 1 })),
    );
    changes.sort((one, other) => (one.key < other.key ? -1 : 1));
    const keys = keysOf(changes);
    const versions = changes.map(({ was, value }) => (value === undefined ? (was as string) : newVersion()));
    const column = (name: "was" | "value" | "ends" | "swap") => arrayOf(changes.map((change) => change[name] ?? null));
    const times = (["fromMs", "untilMs"] as const).map((name) => arrayOf(swaps.map(({ valid }) => valid[name])));
    const values = [arrayOf(keys), column("was"), arrayOf(versions), column("value"), column("ends"), column("swap"), ...times];
    const answers = await ask(swaps.length === 1 ? "swap" : "swapMany", values);
    // All was undone because of one row. Alone, each goes on.
    if (answers.length === 0 && swaps.length > 1) return Promise.all(swaps.map(({ changes, valid }) => swap(changes, valid)));
    const lost = new Set(answers.map(({ swap }) => Number(swap)));
    // A row that another process has inserted meanwhile was not to be seen.
    const isSeen = answers.length > 0 && !answers.some(({ done }) => done);
    const { nowMs, rows } = isSeen ? loadedOf(keys, answers) : await load(keys);
    const now = new Map(keys.map((key, i) => [key, rows[i]]));
    const written = new Map(changes.map(({ key, value = "" }, i) => [key, { value, version: versions[i] as string }]));
    return swaps.map(({ changes }, i) => {
      const done = answers.length > 0 && !lost.has(i + 1);
      return { done, nowMs, rows: changes.map(({ key }) => (done ? written : now).get(key)) };
    });
  }

  function swap(changes: readonly Change[], valid: ValidTime): Promise<Swapped> {
    if (changes.length === 1) return swapOne(changes[0] as Change, valid);
    return swapAll([{ changes, valid }]).then(([swapped]) => swapped as Swapped);
  }

  const goesAlone = ({ changes }: Swap): boolean => changes.length > 1 && changes.some(({ was }) => was === undefined);

  return {
    scope: client,
    load: (keys) => load(keys),
    swap,
    swapMany(swaps) {
      const together = swaps.filter((each) => !goesAlone(each));
      const writing = together.length === 0 ? [] : swapAll(together);
      let next = 0;
      const answerOf = async (each: Swap, i: number): Promise<Swapped> =>
        goesAlone(each) ? swap(each.changes, each.valid) : ((await writing)[i] as Swapped);
      return Promise.all(swaps.map((each) => answerOf(each, goesAlone(each) ? 0 : next++)));
    },
    sweep: (most) => ask("sweep", [most]),
  };
}

interface Answers {
  readonly rows: readonly unknown[];
  readonly rowCount?: unknown;
}

/** A row of an answer: of a change also the number of its swap if that was not written. */
interface SwapAnswer extends Answer {
  readonly done?: boolean;
  readonly swap?: unknown;
}

/** A client of pg's kind. */
interface Preparing {
  query(statement: Statement, values: unknown[]): PromiseLike<Answers>;
}

interface Statement {
  readonly name: string;
  readonly text: string;
}

/** An array as Postgres reads it from a text: some clients take no array, or only once they have asked for the types. */
function arrayOf(items: readonly (Version | null)[]): string {
  const texts = items.map((item) => (typeof item === "string" ? `"${item.replace(/["\\]/g, "\\$&")}"` : String(item)));
  return `{${texts.join()}}`;
}

/** The end of a row whose change is valid until a time: in whole minutes, so that most changes leave the index alone, and Postgres updates a row in place. */
function endsMs(lifeMs: number, untilMs: number): number {
  return Math.ceil((lifeMs + untilMs) / 60_000) * 60_000;
}
