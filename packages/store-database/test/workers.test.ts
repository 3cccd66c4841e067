import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { patienceMs } from "./races.js";
import { consume, fixed, Workers } from "./workers.js";

let workers: Workers;

beforeAll(async () => {
  workers = await Workers.start(3);
}, patienceMs);
afterAll(() => workers?.stop());

describe.each(["d1", "object", "sharded"])("Workers with %s", (database) => {
  it("requests of three isolates on one key are allowed exactly the limit", { timeout: patienceMs }, async () => {
    const questions = Array.from({ length: 30 }, () => ({ limit: fixed(20, "together") }));
    expect(await consume(workers, database, questions)).toEqual({ allowed: 20, degraded: 0 });
  });
});

describe("Workers with any asynchronous store", () => {
  it("each request ends at its own timeout, also after an earlier request has ended", async () => {
    expect(await workers.ask("none/brief", "quick")).toMatchObject({ degraded: false });
    expect(await workers.ask("none/brief", "never")).toMatchObject({ degraded: true });
  });

  it("each slot is renewed while its own request lasts, also after an earlier request has ended", async () => {
    await workers.ask("none/abandonSlot");
    await workers.ask("none/renewSlot");
  });
});

describe("D1", () => {
  it("is told of a missing table by an error that prints the SQL", async () => {
    const missing = workers.ask("nowhere/load", ["key"]);
    await expect(missing).rejects.toMatchObject({ code: "FLOODGATE_MISSING_TABLE", message: expect.stringContaining("CREATE TABLE") });
  });

  it("deletes at most as many ended rows as it is told", async () => {
    const driver = workers.driver("d1");
    const keys = ["ended-1", "ended-2", "lasting"];
    const changes = keys.map((key) => ({ key, was: undefined, value: "x", lifeMs: key === "lasting" ? 60_000 : -60_000 }));
    await driver.swap(changes, { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER });
    const left = async (): Promise<number> => (await driver.load(keys)).rows.filter((row) => row !== undefined).length;
    await driver.sweep?.(1);
    expect(await left()).toBe(2);
    await driver.sweep?.(10);
    expect(await left()).toBe(1);
  });
});
