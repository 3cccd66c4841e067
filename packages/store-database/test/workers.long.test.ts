import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { patienceMs, policies } from "./races.js";
import { bundled, consume, fixed, runtime, suiteInWorker, Workers } from "./workers.js";

let workers: Workers;

beforeAll(async () => {
  workers = await Workers.start(4);
}, patienceMs);
afterAll(() => workers?.stop());

describe.each(["d1", "object", "sharded"])("Workers with %s", (database) => {
  it.each(policies.map((policy, i) => ({ name: `race-${i}`, policy })))(
    "eight clients in four isolates with 2000 requests each are allowed exactly 5000: $policy",
    { timeout: patienceMs },
    async (limit) => {
      const questions = Array.from({ length: 8 }, () => ({ limit, times: 2000 }));
      expect(await consume(workers, database, questions)).toEqual({ allowed: 5000, degraded: 0 });
    },
  );

  it("a request that is over before its decision holds up no other", { timeout: patienceMs }, async () => {
    const impatient = Array.from({ length: 30 }, () => ({ limit: fixed(1000, "hasty"), timeoutMs: 1 }));
    const patient = Array.from({ length: 30 }, () => ({ limit: fixed(1000, "hasty"), timeoutMs: 60_000 }));
    const [hasty, others] = await Promise.all([consume(workers, database, impatient), consume(workers, database, patient)]);
    expect(hasty.allowed + hasty.degraded).toBe(30);
    expect(others).toEqual({ allowed: 30, degraded: 0 });
    expect(await consume(workers, database, [{ limit: fixed(1000, "hasty") }])).toEqual({ allowed: 1, degraded: 0 });
  });

  it("decides, settles, blocks and shows everything as a memory store does", { timeout: patienceMs }, () =>
    // One request, and keys that need not share an object.
    database === "sharded" ? undefined : workers.ask(`${database}/compare`, 150),
  );
});

it("a restart of the runtime loses nothing", { timeout: patienceMs }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-workers-"));
  try {
    for (const allowed of [3, 0]) {
      const restarted = await Workers.start(1, folder);
      for (const database of ["d1", "object", "sharded"]) {
        expect(await consume(restarted, database, [{ limit: fixed(3, "restart"), times: 5 }])).toEqual({ allowed, degraded: 0 });
      }
      await restarted.stop();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("the Worker of the README limits each address", { timeout: patienceMs }, async () => {
  const readme = readFileSync(join(__dirname, "../README.md"), "utf8");
  const [, code = ""] = /## Cloudflare Workers\n+```js\n(.*?)```/s.exec(readme) ?? [];
  const patient = code.replace("timeoutMs: 500", "timeoutMs: 60_000");
  const miniflare = runtime(await bundled({ code: patient }), ["readme"]);
  try {
    const statusFrom = async (ip: string): Promise<number> =>
      (await miniflare.dispatchFetch("http://localhost/", { headers: { "cf-connecting-ip": ip } })).status;
    const statuses = await Promise.all(Array.from({ length: 110 }, () => statusFrom("192.0.2.1")));
    expect(statuses.filter((status) => status === 429)).toHaveLength(10);
    expect(await statusFrom("192.0.2.2")).toBe(200);
  } finally {
    await miniflare.dispose();
  }
});

suiteInWorker("a store in a Durable Object", () => workers, "object", 0.05);
suiteInWorker("a store in D1", () => workers, "d1", 0.02);
