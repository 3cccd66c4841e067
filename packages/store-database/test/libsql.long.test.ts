import { createClient } from "@libsql/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LibsqlClient, libsql, libsqlMigration } from "../src/libsql.js";
import { suiteOf } from "./suite.js";

const client = createClient({ url: ":memory:" });

beforeAll(() => client.executeMultiple(libsqlMigration()));
afterAll(() => client.close());

it("a missing table is an error that prints the SQL", async () => {
  const missing = libsql(client, { table: "nowhere" }).load(["key"]);
  await expect(missing).rejects.toMatchObject({ code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE") });
});

it("changes of one moment share a transaction, and each is written by its own condition", async () => {
  let batches = 0;
  const counted: LibsqlClient = {
    batch(statements, mode) {
      batches++;
      return client.batch(statements, mode);
    },
  };
  const driver = libsql(counted);
  const always = { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER };
  const swapAll = (was: string | undefined) =>
    Promise.all(
      Array.from({ length: 50 }, (_, i) => driver.swap([{ key: `shared-${i % 40}`, was, value: `${i}`, lifeMs: 60_000 }], always)),
    );
  const swapped = await swapAll(undefined);
  expect(swapped.map(({ done }) => done)).toEqual(Array.from({ length: 50 }, (_, i) => i < 40));
  expect(swapped.at(-1)?.rows).toMatchObject([{ value: "9" }]);
  expect(batches).toBe(1);
});

suiteOf("a store in libSQL", () => libsql(client));
