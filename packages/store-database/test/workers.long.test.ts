import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { patienceMs } from "./races.js";
import { bundled, raceCasesOf, restartCase, runtime, suiteInWorker, Workers } from "./workers.js";

let workers: Workers;

beforeAll(async () => {
  workers = await Workers.start(4);
}, patienceMs);
afterAll(() => workers?.stop());

describe.each(["d1", "object", "sharded"])("Workers with %s", (database) => raceCasesOf(() => workers, database));

restartCase((folder) => Workers.start(1, folder), ["d1", "object", "sharded"]);

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
