import { d1 } from "./d1.js";
import type { DatabaseDriver } from "./driver.js";
import { sqliteMigration } from "./sqlite.js";
import { type TableOptions, tableOf } from "./table.js";

/** A client of `@libsql/client`. */
export interface LibsqlClient {
  batch(
    statements: { sql: string; args: (string | number)[] }[],
    mode: "write",
  ): PromiseLike<readonly { readonly rows: readonly unknown[] }[]>;
}

/** The SQL that makes the table. */
export const libsqlMigration: (options?: TableOptions) => string = sqliteMigration;

/**
 * A driver for libSQL and Turso: `databaseStore(libsql(createClient({ url, authToken })))`. A change is one batch, which is one transaction. The
 * server's clock decides. `libsqlMigration()` has the SQL of its table.
 * @throws FloodgateError if an option is invalid.
 */
export function libsql(client: LibsqlClient, options: TableOptions = {}): DatabaseDriver {
  tableOf("libsql", options);
  const prepare = (sql: string) => ({ bind: (...args: (string | number)[]) => ({ sql, args }) });
  // Reads too go to the primary, as writes do: a replica may be behind.
  const batch = async (statements: ReturnType<ReturnType<typeof prepare>["bind"]>[]) =>
    (await client.batch(statements, "write")).map(({ rows }) => ({ results: rows }));
  return { ...d1({ prepare, batch }, options), scope: client };
}
