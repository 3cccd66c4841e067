import { d1 } from "./d1.js";
import type { DatabaseDriver } from "./driver.js";
import { sqliteMigration } from "./sqlite.js";
import { checkClient, type TableOptions, tableOf } from "./table.js";

interface Statement {
  sql: string;
  args: (string | number)[];
}

/** A client of `@libsql/client`. */
export interface LibsqlClient {
  batch(statements: Statement[], mode: "write"): PromiseLike<readonly { readonly rows: readonly unknown[] }[]>;
}

/** The SQL that makes the table. */
export const libsqlMigration: (options?: TableOptions) => string = sqliteMigration;

/**
 * A driver for libSQL and Turso: `databaseStore(libsql(createClient({ url, authToken })))`. A change is one batch, which is one transaction;
 * changes of one moment share it. The server's clock decides. `libsqlMigration()` has the SQL of its table.
 * @throws FloodgateError if an option is invalid.
 */
export function libsql(client: LibsqlClient, options: TableOptions = {}): DatabaseDriver {
  checkClient("libsql", client, ["batch"], "libsql(createClient({ url: process.env.DATABASE_URL }))", {
    $client: "libsql(db.$client)",
  });
  tableOf("libsql", options);
  // Reads too go to the primary, as writes do: a replica may be behind.
  const batch = async (statements: Statement[]) => (await client.batch(statements, "write")).map(({ rows }) => ({ results: rows }));
  const prepare = (sql: string) => ({ bind: (...args: (string | number)[]): Statement => ({ sql, args }) });
  return { ...d1({ prepare, batch }, options), scope: client };
}
