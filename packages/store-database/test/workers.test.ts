import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allRuns } from "../../../test/runs.js";
import { patienceMs, policies } from "./races.js";
import { suiteOf } from "./suite.js";
import { Workers } from "./workers.js";

const isolates = 3;
const window = "365d";
let workers: Workers;

beforeAll(async () => {
  workers = await Workers.start(isolates);
}, patienceMs);
afterAll(() => workers?.stop());

interface Counts {
  readonly allowed: number;
  readonly degraded: number;
}

async function consume(database: string, questions: readonly object[], from = workers): Promise<Counts> {
  const asked = questions.map((question, i) => from.ask(`${database}/consume`, question, i % isolates));
  const answers = (await Promise.all(asked)) as Counts[];
  const sum = (name: keyof Counts): number => answers.reduce((total, answer) => total + answer[name], 0);
  return { allowed: sum("allowed"), degraded: sum("degraded") };
}

const of = (limit: number, name: string) => ({ name, policy: { algorithm: "fixed-window", limit, window } });

describe.each(["d1", "object", "sharded"])("Workers with %s", (database) => {
  it("requests of three isolates on one key are allowed exactly the limit", { timeout: patienceMs }, async () => {
    const questions = Array.from({ length: 90 }, () => ({ limit: of(60, "together") }));
    expect(await consume(database, questions)).toEqual({ allowed: 60, degraded: 0 });
  });

  it("a request that is over before its decision holds up no other", { timeout: patienceMs }, async () => {
    const impatient = Array.from({ length: 30 }, () => ({ limit: of(1000, "hasty"), timeoutMs: 1 }));
    const patient = Array.from({ length: 30 }, () => ({ limit: of(1000, "hasty"), timeoutMs: 60_000 }));
    const [hasty, others] = await Promise.all([consume(database, impatient), consume(database, patient)]);
    expect(hasty.allowed + hasty.degraded).toBe(30);
    expect(others).toEqual({ allowed: 30, degraded: 0 });
    expect(await consume(database, [{ limit: of(1000, "hasty") }])).toEqual({ allowed: 1, degraded: 0 });
  });

  it.each((allRuns ? policies : []).map((policy, i) => ({ name: `race-${i}`, policy })))(
    "twelve requests of three isolates with 700 decisions each are allowed exactly 5000: $policy",
    { timeout: patienceMs },
    async (limit) => {
      const questions = Array.from({ length: 12 }, () => ({ limit, times: 700 }));
      expect(await consume(database, questions)).toEqual({ allowed: 5000, degraded: 0 });
    },
  );
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

it.runIf(allRuns)("a restart of the runtime loses nothing", { timeout: patienceMs }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-workers-"));
  try {
    for (const allowed of [3, 0]) {
      const restarted = await Workers.start(1, folder);
      for (const database of ["d1", "object", "sharded"]) {
        expect(await consume(database, [{ limit: of(3, "restart"), times: 5 }], restarted)).toEqual({ allowed, degraded: 0 });
      }
      await restarted.stop();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

suiteOf("a store in a Durable Object", () => workers.driver("object"));
if (allRuns) suiteOf("a store in D1", () => workers.driver("d1"));
