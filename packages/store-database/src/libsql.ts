import { d1 } from "./d1.js";
import type { DatabaseDriver } from "./driver.js";
import { sqliteMigration } from "./sqlite.js";
import { checkClient, type TableOptions, tableOf } from "./table.js";

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
  checkClient("libsql", client, ["batch"], "libsql(createClient({ url: process.env.DATABASE_URL }))");
  tableOf("libsql", options);
  let calls: Call[] = [];

  async function send(): Promise<void> {
    const sent = calls;
    calls = [];
    try {
      // Reads too go to the primary, as writes do: a replica may be behind.
      const answers = await client.batch(
        sent.flatMap(({ statements }) => statements),
        "write",
      );
      let from = 0;
      for (const { statements, resolve } of sent) {
        resolve(answers.slice(from, from + statements.length).map(({ rows }) => ({ results: rows })));
        from += statements.length;
      }
    } catch (error) {
      for (const { reject } of sent) reject(error);
    }
  }

  const prepare = (sql: string) => ({ bind: (...args: (string | number)[]): Statement => ({ sql, args }) });
  /** Changes of one moment share a transaction, and so a round trip and a wait for the disk. Each still has its own condition. */
  const batch = (statements: Statement[]): Promise<Answer> =>
    new Promise((resolve, reject) => {
      if (calls.length === mostCalls) void send();
      if (calls.length === 0) queueMicrotask(() => calls.length > 0 && send());
      calls.push({ statements, resolve, reject });
    });
  return { ...d1({ prepare, batch }, options), scope: client };
}

interface Statement {
  readonly sql: string;
  readonly args: (string | number)[];
}

type Answer = readonly { readonly results: readonly unknown[] }[];

interface Call {
  readonly statements: readonly Statement[];
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** The most calls in one transaction. */
const mostCalls = 64;
