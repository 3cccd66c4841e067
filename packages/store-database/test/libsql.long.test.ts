import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@libsql/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LibsqlClient, libsql, libsqlMigration } from "../src/libsql.js";
import { clientKillCase, raceCases } from "./races.js";
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

describe("one libSQL file", () => {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-libsql-"));
  // A connection waits this long for the lock of another process.
  const connection = { url: `file:${join(folder, "limits.db")}`, timeout: 60_000 };
  const shared = createClient(connection);
  beforeAll(() => shared.executeMultiple(`PRAGMA journal_mode = WAL; ${libsqlMigration()}`));
  afterAll(() => {
    shared.close();
    rmSync(folder, { recursive: true });
  });

  const target = () => ({ connection: { database: "libsql", ...connection }, driver: libsql(shared) });
  raceCases(target);
  clientKillCase(target);
});

suiteOf("a store in libSQL", () => libsql(client));
