/**
 * Opens a SQLite file: with Node's own `node:sqlite` from Node 22.13 on, else with node-sqlite3-wasm, which needs no native code.
 * Both answer at once.
 */
export const openDatabase = await libraryOf();

async function libraryOf() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 13)) {
    const { DatabaseSync } = await import("node:sqlite");
    return (path) => {
      const database = new DatabaseSync(path);
      return {
        exec: (sql) => database.exec(sql),
        close: () => database.close(),
        prepare(sql) {
          const statement = database.prepare(sql);
          return { get: (...values) => statement.get(...values), run: (...values) => statement.run(...values).changes };
        },
      };
    };
  }
  const { default: sqlite } = await import("node-sqlite3-wasm");
  return (path) => {
    const database = new sqlite.Database(path);
    return {
      exec: (sql) => database.exec(sql),
      close: () => database.close(), // finalizes its statements
      prepare(sql) {
        const statement = database.prepare(sql);
        // `get` would leave the statement open, and the file locked.
        return { get: (...values) => statement.all(values)[0], run: (...values) => statement.run(values).changes };
      },
    };
  };
}
