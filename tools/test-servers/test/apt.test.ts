import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { installCommand, withBackports } from "../src/apt.js";

test("backports are added to sources of the release, and to no other source", () => {
  const [release, other] = ["Suites: trusty trusty-updates", "Suites: trusty-security"];
  const sources = (suites: string): string => `Types: deb\nURIs: http://mirror.example/debian\n${suites}\nComponents: main\n`;
  const before = `${sources(release)}\n${sources(other)}`;
  expect(withBackports(before, "trusty")).toBe(`${sources("Suites: trusty trusty-backports trusty-updates")}\n${sources(other)}`);
});

test("backports are added in the one-line format too", () => {
  const release = "deb [signed-by=/key.gpg] http://mirror.example/debian trusty main contrib\n";
  const others = "# deb http://mirror.example/old trusty main\ndeb http://mirror.example/debian trusty-updates main\n";
  const backports = "deb [signed-by=/key.gpg] http://mirror.example/debian trusty-backports main contrib\n";
  expect(withBackports(release + others, "trusty")).toBe(release + backports + others);
});

describe.runIf(existsSync("/usr/bin/flock"))("an installation", () => {
  const root = mkdtempSync(join(tmpdir(), "floodgate-apt-test-"));
  const [bin, policy, log] = [join(root, "bin"), join(root, "policy-rc.d"), join(root, "log")];
  const machinesOwn = "#!/bin/sh\nexit 104\n";
  afterAll(() => rmSync(root, { recursive: true }));

  /** An apt-get that writes down what it was asked, and whether a service would have been started. */
  beforeEach(() => {
    mkdirSync(bin, { recursive: true });
    const program = `#!/bin/sh\necho "begin $*" >>${log}\nsleep 0.05\n${policy} nginx start\necho "end $?" >>${log}\n[ "$FAIL" != "$2" ]\n`;
    writeFileSync(join(bin, "apt-get"), program, { mode: 0o755 });
    rmSync(log, { force: true });
    rmSync(policy, { force: true });
  });

  async function install(name: string, env: Record<string, string> = {}): Promise<void> {
    const [command = "", ...args] = installCommand(join(root, "lock"), policy, mkdtempSync(join(root, "dir-")), name, ["-q"]);
    await promisify(execFile)(command, args, { env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, ...env } });
  }

  test("starts no service, and leaves nothing behind", async () => {
    await install("nginx");
    expect(readFileSync(log, "utf8")).toBe("begin -q update\nend 101\nbegin -q install --yes --no-install-recommends nginx\nend 101\n");
    expect(readdirSync(root).sort()).toEqual(["bin", "lock", "log"]);
  });

  test("restores the machine's own policy-rc.d, also if it fails", async () => {
    writeFileSync(policy, machinesOwn, { mode: 0o755 });
    await expect(install("nginx", { FAIL: "install" })).rejects.toThrow();
    expect(readFileSync(policy, "utf8")).toBe(machinesOwn);
  });

  test("restores what an earlier run left when it was killed", async () => {
    writeFileSync(policy, "#!/bin/sh\n# floodgate installs a package\nexit 101\n", { mode: 0o755 });
    writeFileSync(`${policy}.kept`, machinesOwn, { mode: 0o755 });
    await install("nginx");
    expect(readFileSync(policy, "utf8")).toBe(machinesOwn);
    expect(existsSync(`${policy}.kept`)).toBe(false);
  });

  test("waits for another one", async () => {
    await Promise.all([install("nginx"), install("caddy")]);
    const lines = readFileSync(log, "utf8").trim().split("\n");
    expect(lines.filter((_, i) => i % 2 === 0).every((line) => line.startsWith("begin"))).toBe(true);
    expect(lines.filter((line) => line === "end 101")).toHaveLength(4);
  });
});
