import { expect, test } from "vitest";
import { floodgate } from "./command.js";

test.each(["postgres", "mysql", "mariadb", "sqlite", "libsql", "d1"])(
  "migration %s prints the SQL of the table, under the name that is asked for",
  async (database) => {
    const { code, out } = await floodgate(["migration", database, "--table", "limits"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^CREATE TABLE IF NOT EXISTS limits \(/);
  },
);

test("migration postgres --unlogged makes a table that writes no log", async () => {
  expect(await floodgate(["migration", "postgres", "--unlogged"])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^CREATE UNLOGGED TABLE/),
  });
});

test.each(["mysql", "mariadb", "sqlite", "libsql", "d1"])("migration %s --unlogged is refused: it is for Postgres", async (database) => {
  const message = `--unlogged is for Postgres. Write floodgate migration ${database}.`;
  expect(await floodgate(["migration", database, "--unlogged"])).toMatchObject({
    code: 64,
    out: "",
    err: expect.stringContaining(message),
  });
});

test.each([
  ["oracle", "Allowed choices"],
  ["postgres --table a;b", "--table"],
])("migration %s is refused", async (words, why) => {
  const { code, err } = await floodgate(["migration", ...words.split(" ")]);
  expect([code, err]).toEqual([64, expect.stringContaining(why.replace("--table", "`table`"))]);
});
