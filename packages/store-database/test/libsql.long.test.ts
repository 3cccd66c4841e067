import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@libsql/client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { libsql, libsqlMigration } from "../src/libsql.js";
import { suiteOf } from "./suite.js";

const folder = mkdtempSync(join(tmpdir(), "floodgate-libsql-"));
const client = createClient({ url: `file:${join(folder, "limits.db")}` });

beforeAll(() => client.executeMultiple(`PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; ${libsqlMigration()}`));
afterAll(() => {
  client.close();
  rmSync(folder, { recursive: true });
});

it("a missing table is an error that prints the SQL", async () => {
  const missing = libsql(client, { table: "nowhere" }).load(["key"]);
  await expect(missing).rejects.toMatchObject({ code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE") });
});

suiteOf("a store in libSQL", () => libsql(client));
