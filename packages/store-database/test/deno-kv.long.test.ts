import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { patienceMs } from "./races.js";
import { bundled, consume, fixed, raceCasesOf, restartCase, runDeno, suiteInWorker, Workers } from "./workers.js";

let workers: Workers;
const folder = mkdtempSync(join(tmpdir(), "floodgate-deno-"));

beforeAll(async () => {
  workers = await Workers.startDeno(8, folder);
}, patienceMs);
afterAll(async () => {
  await workers?.stop();
  rmSync(folder, { recursive: true });
});

const always = { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER };

describe("Deno KV", () => {
  it("requests of several processes on one key are allowed exactly the limit", { timeout: patienceMs }, async () => {
    const questions = Array.from({ length: 30 }, () => ({ limit: fixed(20, "together") }));
    expect(await consume(workers, "kv", questions)).toEqual({ allowed: 20, degraded: 0 });
  });

  it("keeps rows longer than a value of Deno KV, and shorter ones after them", async () => {
    const driver = workers.driver("kv");
    let was: string | undefined;
    for (const value of ["a".repeat(700_000), "b".repeat(70_000), "c", "d".repeat(131_000)]) {
      const { done, rows } = await driver.swap([{ key: "long", was, value, lifeMs: 60_000 }], always);
      expect(done).toBe(true);
      was = rows[0]?.version as string;
      expect((await driver.load(["long"])).rows).toEqual([{ version: was, value }]);
    }
  });

  it("a change with the longest life is kept", async () => {
    const driver = workers.driver("kv");
    await driver.swap([{ key: "lasting", was: undefined, value: "x", lifeMs: Number.MAX_SAFE_INTEGER - Date.now() }], always);
    expect((await driver.load(["lasting"])).rows).toMatchObject([{ value: "x" }]);
  });

  it("decides requests of one moment that share a limit and have more keys than one operation", { timeout: patienceMs }, async () => {
    expect(await workers.ask("kv/shared", 200)).toEqual({ allowed: 150 });
  });
});

describe("processes of Deno", () => {
  raceCasesOf(() => workers, "kv");
  restartCase((restarted) => Workers.startDeno(1, restarted), ["kv"]);

  it("pass their database to the driver by Deno's own types", { timeout: patienceMs }, async () => {
    const file = join(folder, "types.ts");
    const source = JSON.stringify(join(__dirname, "../src/deno-kv.ts"));
    writeFileSync(file, `import { denoKv } from ${source};\ndenoKv(await Deno.openKv());\n`);
    const checked = runDeno(folder, ["check", "--no-config", "--unstable-kv", "--unstable-sloppy-imports", file]);
    expect(await once(checked, "exit")).toEqual([0, null]);
  });

  it("run the app of the README", { timeout: patienceMs }, async () => {
    const readme = readFileSync(join(__dirname, "../README.md"), "utf8");
    const [, code = ""] = /## Deno KV\n+```js\n(.*?)```/s.exec(readme) ?? [];
    const file = join(folder, "readme.mjs");
    const patient = code.replace("store }", "store, timeoutMs: 60_000 }").replace("openKv()", 'openKv(":memory:")');
    const listen = `serve({ hostname: "127.0.0.1", port: 0, onListen: ({ port }) => console.log(port) }, `;
    writeFileSync(file, await bundled({ code: patient.replace("serve(", listen) }));
    const app = runDeno(folder, ["run", "--no-config", "--allow-all", "--unstable-kv", file]);
    try {
      const [port] = await once(app.stdout, "data");
      const url = `http://127.0.0.1:${Number(port)}/`;
      const responses = await Promise.all(Array.from({ length: 110 }, () => fetch(url)));
      expect(responses.filter(({ status }) => status === 429)).toHaveLength(10);
    } finally {
      app.kill();
    }
  });

  suiteInWorker("a store in Deno KV", () => workers, "kv", 0.2);
});
