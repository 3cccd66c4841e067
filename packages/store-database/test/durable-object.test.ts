import { fixedWindow } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { describe, expect, it } from "vitest";
import { FloodgateObject, type ObjectState } from "../src/durable-object.js";
import { databaseStore } from "../src/index.js";
import { MapDriver } from "./map-driver.js";
import { openSqlite } from "./open-sqlite.mjs";

/** What an object has, on a SQLite of this process. */
function objectState() {
  let database = openSqlite(":memory:");
  const state = { alarmMs: null as number | null, deletions: 0 };
  const storage: ObjectState["storage"] = {
    sql: {
      exec(sql, ...values) {
        if (sql.startsWith("CREATE")) database.exec(sql);
        const answers = sql.startsWith("CREATE") ? [] : database.prepare(sql).all(...values);
        return { toArray: () => answers };
      },
    },
    transactionSync: (work) => work(),
    getAlarm: async () => state.alarmMs,
    async setAlarm(atMs) {
      state.alarmMs = atMs;
    },
    async deleteAll() {
      database = openSqlite(":memory:");
      state.deletions++;
    },
  };
  return Object.assign(state, { storage });
}

function write(object: FloodgateObject, keys: readonly string[], lifeMs: number): Promise<Response> {
  const changes = keys.map((key) => ({ key, value: "x", lifeMs }));
  return object.fetch({ json: async () => ({ changes, valid: { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER } }) });
}

async function left(object: FloodgateObject, keys: readonly string[]): Promise<number> {
  const { rows } = (await (await object.fetch({ json: async () => ({ keys }) })).json()) as { rows: unknown[] };
  return rows.filter((row) => row !== null).length;
}

describe("an object", () => {
  it("deletes rows that have ended 500 at a time, and everything after the last", async () => {
    const state = objectState();
    const object = new FloodgateObject(state);
    const keys = Array.from({ length: 700 }, (_, i) => `key-${i}`);
    await write(object, keys, -1000);
    expect(state.alarmMs).toBeGreaterThan(Date.now());
    await object.alarm();
    expect(await left(object, keys)).toBe(200);
    expect(state.alarmMs).toBeLessThanOrEqual(Date.now());
    await object.alarm();
    expect(state.deletions).toBe(1);
    expect(await left(object, keys)).toBe(0);
  });

  it("wakes again when its next row ends", async () => {
    const state = objectState();
    const object = new FloodgateObject(state);
    await write(object, ["key"], 3_600_000);
    await object.alarm();
    expect(await left(object, ["key"])).toBe(1);
    expect(state.alarmMs).toBeGreaterThan(Date.now() + 3_500_000);
  });
});

describe("a database in parts", () => {
  const driver = Object.assign(new MapDriver(), { shardOf: (key: string) => `${key.length} letters` });
  const store = databaseStore(driver);
  const policy = fixedWindow({ limit: 1, window: "1m" });
  const check = (name: string, key: string) => ({ limit: createLimit(name, policy), key, cost: 1, shadow: false, dryRun: false });

  it("tells the part at the beginning of each key", async () => {
    await store.consumeAll([check("first", "ada"), check("second", "bob")], 10_000);
    expect([...driver.rows.keys()].map((key) => key.split(" ")[0])).toEqual(['"3\\u0020letters"', '"3\\u0020letters"']);
  });

  it("refuses a request with keys in several parts", async () => {
    const refused = store.consumeAll([check("first", "ada"), check("second", "grace")], 10_000);
    await expect(refused).rejects.toMatchObject({ code: "FLOODGATE_DIFFERENT_STORES" });
  });
});
