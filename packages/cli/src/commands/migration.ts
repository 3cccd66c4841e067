import { d1Migration } from "@floodgate/store-database/d1";
import { libsqlMigration } from "@floodgate/store-database/libsql";
import { mysqlMigration } from "@floodgate/store-database/mysql";
import { postgresMigration } from "@floodgate/store-database/postgres";
import { sqliteMigration } from "@floodgate/store-database/sqlite";
import { Argument, type Command } from "commander";
import { Failure } from "../failure.js";
import type { Io } from "../io.js";
import { examples } from "../options.js";

const migrations = {
  postgres: postgresMigration,
  mysql: mysqlMigration,
  mariadb: mysqlMigration,
  sqlite: sqliteMigration,
  libsql: libsqlMigration,
  d1: d1Migration,
};

interface MigrationOptions {
  readonly table: string;
  readonly unlogged?: boolean;
}

export function addMigration(program: Command, io: Io): void {
  const command = program
    .command("migration")
    .description("Print the SQL that makes the table of @floodgate/store-database. You run it, with your other migrations.")
    .addArgument(new Argument("<database>", "the kind of database").choices(Object.keys(migrations)))
    .option("--table <name>", "the table, also with its schema", "floodgate")
    .option("--unlogged", "Postgres: faster, but a crash of the server empties the table");
  examples(command, "migration postgres | psql", "migration mysql --table limits").action(
    (database: keyof typeof migrations, options: MigrationOptions) => {
      if (options.unlogged === true && database !== "postgres") {
        throw new Failure("usage", `--unlogged is for Postgres. Write floodgate migration ${database}.`);
      }
      io.out(migrations[database](options));
    },
  );
}
