import { createRequire } from "node:module";
import type { SqliteDatabase } from "../src/sqlite.js";

/** Opens a SQLite file: with Node's own `node:sqlite` from Node 22.13 on, else with node-sqlite3-wasm, which needs no native code. */
export function openSqlite(path: string): SqliteDatabase & { close(): void } {
  const require = createRequire(__filename);
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 13)) return new (require("node:sqlite").DatabaseSync)(path);
  const database = new (require("node-sqlite3-wasm").Database)(path);
  return {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    prepare(sql) {
      const statement = database.prepare(sql);
      return { all: (...values) => statement.all(values), run: (...values) => statement.run(values) };
    },
  };
}
