import { FloodgateError } from "@floodgate/core";

export interface TableOptions {
  /** The table, also with its schema: `"limits.floodgate"`. Default `"floodgate"`. */
  table?: string;
}

/** The name of the table. @throws FloodgateError unless it can stand in SQL as it is. */
export function tableOf(where: string, { table = "floodgate" }: TableOptions): string {
  if (typeof table === "string" && /^[a-z_]\w{0,39}(\.[a-z_]\w{0,39})?$/.test(table)) return table;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `${where}: \`table\` must be a name of lower-case letters, digits and _, also after a schema and a dot, but was ${JSON.stringify(table)}. Write table: "floodgate".`,
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

/** A version that no other writing has: a random number below 2^53. As text, because clients read large numbers as text. */
export function newVersion(): string {
  return String(1 + Math.floor(Math.random() * (Number.MAX_SAFE_INTEGER - 1)));
}
