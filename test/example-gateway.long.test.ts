import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "./files.js";
import { expectAllStopped } from "./programs.js";

const run = promisify(execFile);
const folder = join(import.meta.dirname, "../examples/gateway");
const cli = join(import.meta.dirname, "../packages/cli/dist/main.js");
const read = (name: string): string => readFileSync(join(folder, name), "utf8");

describe("the gateway demo", () => {
  test("shows one limit for nginx, Caddy and the proxy, and stops all servers in the end", { timeout: 60_000 }, async () => {
    const { stdout } = await run(process.execPath, [join(folder, "demo.mjs")]);
    const rows = [...stdout.matchAll(/^ {2}(nginx|Caddy|the proxy|together) +(\d+) × 200 +(\d+) × 429 +the app received +(\d+)/gm)];
    const ways = rows.slice(0, 3).map(([, , ...numbers]) => numbers.map(Number));
    for (const [passed = 0, limited = 0, received] of ways) expect([passed + limited, received]).toEqual([20, passed]);
    const sums = [0, 1, 2].map((i) => ways.reduce((sum, numbers) => sum + (numbers[i] as number), 0));
    expect(sums).toEqual([30, 30, 30]);
    expect(rows[3]?.slice(1)).toEqual(["together", "30", "30", "30"]);
    expect(stdout).toContain("Exactly 30 passed");
    const [before = ""] = stdout.split("The rule");
    await expectAllStopped(before.replace(/asks the decision server on /g, ""), 7);
  });

  test("says what to install if a program is missing", async () => {
    // Neither root nor CI: nothing is installed.
    const missing = `process.getuid = () => 1000; delete process.env.CI; await import(${JSON.stringify(join(folder, "demo.mjs"))});`;
    const ended = run(process.execPath, ["--input-type=module", "-e", hidden(missing)]);
    await expect(ended).rejects.toMatchObject({ code: 1, stderr: expect.stringMatching(/Install it: apt-get install redis-tools/) });
  });
});

/** Code that sees no program anywhere. */
function hidden(code: string): string {
  return `import fs from "node:fs"; import { syncBuiltinESMExports } from "node:module";
    fs.existsSync = () => false; syncBuiltinESMExports(); process.env.PATH = ""; ${code}`;
}

describe("the files for a service", () => {
  const dir = temporaryFolder("unit-test");

  test("have valid rules and settings", async () => {
    const floodgate = (...args: string[]): ReturnType<typeof run> => run(process.execPath, [cli, ...args]);
    const [rules, ofDemo, { stdout }] = await Promise.all([
      floodgate("check", "--keys", "user", join(folder, "limits.yaml")),
      floodgate("check", "--keys", "user", join(folder, "demo-limits.yaml")),
      floodgate("serve", "--config", join(folder, "floodgate.yaml"), "--print-config"),
    ]);
    for (const checked of [rules, ofDemo]) expect(checked.stdout).toContain("no problems");
    expect(stdout).toContain(`rules: ${join(folder, "limits.yaml")} `);
    expect(stdout).toMatch(/^presets: \[ nginx, caddy \]/m);
  });

  test.runIf(existsSync("/usr/bin/systemd-analyze"))("satisfy systemd", async () => {
    writeFileSync(join(dir, "floodgate.service"), read("floodgate.service"));
    const { stdout, stderr } = await run("systemd-analyze", ["verify", join(dir, "floodgate.service")]);
    expect(stdout + stderr).toBe("");
  });

  test("run the command that exists, with settings that exist", async () => {
    const [, unit = ""] = /^ExecStart=\/usr\/bin\/env floodgate (.*)$/m.exec(read("floodgate.service")) ?? [];
    const local = (arg: string): string => arg.replace("/etc/floodgate", folder);
    await run(process.execPath, [cli, ...unit.split(" ").map(local), "--print-config"]);
    const docs = readFileSync(join(import.meta.dirname, "../docs/gateways/traefik.md"), "utf8");
    const [, container = ""] = /^ +floodgate (serve .*)$/m.exec(docs) ?? [];
    const { stdout } = await run(process.execPath, [cli, ...container.split(" ").map(local), "--print-config"]);
    expect(stdout).toMatch(/^listen: 0\.0\.0\.0:8081 /m);
    expect(stdout).toMatch(/^trustedPeers: \[ loopback, uniquelocal \] /m);
  });
});
