import { createClient } from "@libsql/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { libsql, libsqlMigration } from "../src/libsql.js";
import { suiteOf } from "./suite.js";

const client = createClient({ url: ":memory:" });

beforeAll(() => client.executeMultiple(libsqlMigration()));
afterAll(() => client.close());

it("a missing table is an error that prints the SQL", async () => {
  const missing = libsql(client, { table: "nowhere" }).load(["key"]);
  await expect(missing).rejects.toMatchObject({ code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE") });
});

suiteOf("a store in libSQL", () => libsql(client));
