import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
export const isNative = major > 22 || (major === 22 && minor >= 13);

export function openSqlite(path) {
  if (isNative) return new (require("node:sqlite").DatabaseSync)(path);
  const database = new (require("node-sqlite3-wasm").Database)(path);
  return {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    prepare(sql) {
      let statement = database.prepare(sql);
      const ask = (how, values) => {
        statement ??= database.prepare(sql);
        try {
          return statement[how](values);
        } catch (error) {
          // A statement that has failed would keep its lock. The other libraries reset it. To finalize it throws the same error.
          const failed = statement;
          statement = undefined;
          failed.finalize();
          throw error;
        }
      };
      return { all: (...values) => ask("all", values), run: (...values) => ask("run", values) };
    },
  };
}
