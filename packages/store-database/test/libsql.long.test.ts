import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLimiter, fixedWindow } from "@floodgate/core";
import { createClient } from "@libsql/client";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { databaseStore } from "../src/index.js";
import { type LibsqlClient, libsql, libsqlMigration } from "../src/libsql.js";
import { clientKillCase, patienceMs, raceCases } from "./races.js";
import { clientOptionsCase, suiteOf } from "./suite.js";

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
  const valid = { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER };
  const swaps = Array.from({ length: 50 }, (_, i) => ({
    changes: [{ key: `shared-${i % 40}`, was: undefined, value: `${i}`, lifeMs: 60_000 }],
    valid,
  }));
  const swapped = (await driver.swapMany?.(swaps)) ?? [];
  expect(swapped.map(({ done }) => done)).toEqual(Array.from({ length: 50 }, (_, i) => i < 40));
  expect(swapped.at(-1)?.rows).toMatchObject([{ value: "9" }]);
  expect(batches).toBe(1);
});

it("decisions on 50 keys at one moment take two calls: one reads, one writes", async () => {
  let batches = 0;
  const counted: LibsqlClient = {
    batch(statements, mode) {
      batches++;
      return client.batch(statements, mode);
    },
  };
  const store = databaseStore(libsql(counted));
  const policy = fixedWindow({ limit: 1, window: "365d" });
  const limiter = createLimiter({ name: "many", policy, store, timeoutMs: patienceMs, onStoreError: "deny" });
  const decisions = await Promise.all(Array.from({ length: 50 }, (_, i) => limiter.consume(`key-${i}`)));
  expect(decisions.every(({ allowed }) => allowed)).toBe(true);
  expect(batches).toBe(2);
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

clientOptionsCase("a store in libSQL", async () => {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-libsql-"));
  const clients = (["number", "bigint", "string"] as const).map((intMode) =>
    createClient({ url: `file:${join(folder, "limits.db")}`, intMode }),
  );
  onTestFinished(() => {
    for (const each of clients) each.close();
    rmSync(folder, { recursive: true });
  });
  await clients[0]?.executeMultiple(libsqlMigration());
  return { decides: clients.map((each) => libsql(each)), refused: [] };
});
