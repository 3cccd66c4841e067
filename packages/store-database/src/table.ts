import { FloodgateError } from "@floodgate/core";
import { checkOptions, invalidOption, wrongOption } from "@floodgate/core/store";
import type { Change, Loaded, Row } from "./driver.js";

export interface TableOptions {
  /** The table, also with its schema: `"limits.floodgate"`. Default `"floodgate"`. */
  table?: string;
}

/**
 * The name of the table.
 * @param more the options beside `table`.
 * @throws FloodgateError if an option is unknown, or the name cannot stand in SQL as it is.
 */
export function tableOf(where: string, options: TableOptions, more: readonly string[] = []): string {
  const client = where.endsWith("Migration") ? "" : "client, ";
  checkOptions(where, options, ["table", ...more], `${where}(${client}{ table: "floodgate" })`);
  const { table = "floodgate" } = options;
  if (typeof table === "string" && /^[a-z_]\w{0,39}(\.[a-z_]\w{0,39})?$/.test(table)) return table;
  throw wrongOption(
    where,
    "table",
    "a name of lower-case letters, digits and _, also after a schema and a dot",
    table,
    'table: "floodgate"',
  );
}

/**
 * Checks the client of a database when the driver is made, not at the first decision. The value is not shown, because a URL has a password.
 * @param methods what the driver calls.
 * @param example what to write, for the error.
 * @param others properties of what apps hold besides such clients, and what to write with each. Some have the methods too.
 */
export function checkClient(
  where: string,
  client: unknown,
  methods: readonly string[],
  example: string,
  others: { readonly [property: string]: string } = {},
): void {
  const given = (client ?? {}) as { readonly [method: string]: unknown };
  for (const [property, instead] of Object.entries(others)) {
    if (given[property] === undefined) continue;
    throw invalidOption(
      `${where} takes the client of a database, but what was given is something else: it has \`${property}\`. Write ${instead}.`,
    );
  }
  const missing = methods.find((method) => typeof given[method] !== "function");
  if (missing === undefined) return;
  const type = typeof given["then"] === "function" ? "a promise: await it first" : client === null ? "null" : typeof client;
  throw invalidOption(
    `${where} takes the client of a database, but what was given (${type}) has no method \`${missing}\`. Write ${example}.`,
  );
}

/** The error of a table that does not exist. */
export function missingTable(table: string, migration: string, cause: unknown): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_MISSING_TABLE",
    `The database has no table ${JSON.stringify(table)}. Floodgate never makes it by itself. Run this once:\n\n${migration}`,
    { cause },
  );
}

/** A row of an answer, with the database's time: as text or a BigInt if an option of the client says so. */
export interface Answer extends Row {
  readonly now: unknown;
  /** Null in the only row of an answer, if no key has a row. */
  readonly key: string | null;
}

/** What a database answers, in the order of the keys. */
export function loadedOf(keys: readonly string[], answers: readonly Answer[] = []): Loaded {
  const nowMs = timeOf(answers[0]);
  const rows = new Map(answers.map((answer) => [answer.key, answer]));
  // A key in another form would look like no row, and each request like the first.
  for (const row of answers) if (typeof (row.key ?? "") !== "string" || typeof (row.value ?? "") !== "string") throw changedRows();
  return { nowMs, rows: keys.map((key) => rows.get(key)) };
}

/**
 * The database's time in a row of an answer.
 * @throws Error if the row has none, because the client answers rows in another form than objects.
 */
export function timeOf(answer: Pick<Answer, "now"> | undefined): number {
  const nowMs = Number(answer?.now ?? Number.NaN);
  if (Number.isSafeInteger(nowMs)) return nowMs;
  throw changedRows();
}

export function changedRows(): Error {
  return new Error(
    "The client did not answer rows as objects with the names of their columns, and texts as strings. Leave out the option of the client that changes rows, or its form with callbacks",
  );
}

export function keysOf(changes: readonly Pick<Change, "key">[]): string[] {
  return changes.map(({ key }) => key);
}

/** The code of a database's error. Sequelize, Prisma and others put that into an error of their own. */
export function codeOf(error: unknown): unknown {
  const { code, originalCode, original, cause, meta } = Object(error);
  const inner = original ?? cause ?? meta?.driverAdapterError;
  return (inner && codeOf(inner)) ?? originalCode ?? code;
}

/** The first 7 digits of versions, and the next 9: counted up from a random place, because the text of a small number takes a tenth of the time. */
let high = 0;
let low = 999_999_999;

/** A version that no other write has: a number below 2^53. As text, because clients read large numbers as text. */
export function newVersion(): string {
  if (low++ === 999_999_999) {
    high = 1_000_000 + Math.floor(Math.random() * 8_000_000);
    low = 100_000_000 + Math.floor(Math.random() * 900_000_000);
  }
  return `${high}${low}`;
}
