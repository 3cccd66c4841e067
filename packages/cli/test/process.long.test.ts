import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type RedisServer, startRedis } from "@floodgate/test-servers";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import { limits, tempFolder } from "./files.js";
import { floodgateProcess, floodgateWithOutput, startFloodgate } from "./process.js";

const { write, path } = tempFolder();
const file = write("limits.yaml", limits);

describe("the command's process", () => {
  let server: RedisServer;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    server = await startRedis();
    env = { FLOODGATE_REDIS: `redis://127.0.0.1:${server.port}` };
  });
  afterAll(() => server.stop());

  it("runs each command and exits by itself", async () => {
    expect(await floodgateProcess(["check", "-"], { input: limits })).toEqual({ code: 0, out: "stdin: 3 rules, no problems\n", err: "" });
    expect(await floodgateProcess(["push", file], { env })).toMatchObject({ code: 0, out: expect.stringMatching(/version 1\n$/) });
    expect(await floodgateProcess(["pull"], { env })).toEqual({ code: 0, out: limits, err: "floodgate:rules: version 1\n" });
    const target = ["--rule", "posts", "--key", "42"];
    expect(await floodgateProcess(["status", ...target], { env })).toMatchObject({ code: 0, out: expect.stringContaining("not limited") });
    expect(await floodgateProcess(["reset", ...target], { env })).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Before: .*After: /s),
    });
  });

  it("exits with 1 if refused, 2 without Redis, 64 for invalid arguments, without a stack", async () => {
    const all = await Promise.all([
      floodgateProcess(["check", "-"], { input: "rules: 1" }),
      floodgateProcess(["pull", "--rules-key", "none"], { env }),
      floodgateProcess(["pull", "--redis", "redis://127.0.0.1:1"]),
      floodgateProcess(["pul"]),
    ]);
    expect(all.map(({ code }) => code)).toEqual([1, 1, 2, 64]);
    for (const { out, err } of all) expect(out + err).not.toMatch(/^\s+at /m);
  });
});

test("a file that cannot be written whole, as on a full disk, stays as it was", () => {
  const main = join(__dirname, "..", "dist", "main.js");
  const init = (file: string, ...args: readonly string[]) =>
    spawnSync("sh", ["-c", 'ulimit -f 1; exec "$0" "$@"', process.execPath, main, "init", file, "--preset", "per-ip,login", ...args], {
      encoding: "utf8",
    });
  const old = write("old.yaml", "rules: []\n");
  const { status, stderr } = init(old, "--force");
  expect([status, stderr]).toEqual([74, expect.stringContaining(`${old} cannot be written: EFBIG`)]);
  expect(readFileSync(old, "utf8")).toBe("rules: []\n");
  expect(init(path("new.yaml")).status).toBe(74);
  expect(existsSync(path("new.yaml"))).toBe(false);
});

test("serve and gateway are loaded only for their own commands", () => {
  const script = `require(${JSON.stringify(join(__dirname, "../dist/index.js"))}); console.log(String(Object.keys(require.cache).filter((file) => /gateway/.test(file)).length))`;
  expect(execFileSync(process.execPath, ["-e", script], { encoding: "utf8" })).toBe("0\n");
});

test.each([
  [{ FORCE_COLOR: undefined }, false],
  [{ FORCE_COLOR: "1" }, true],
  [{ FORCE_COLOR: "0" }, false],
])("a process without a terminal has colours if FORCE_COLOR says so: %o", async (env, hasColors) => {
  const { out } = await floodgateProcess(["check", file, "--request", "/"], { env: { NO_COLOR: undefined, ...env } });
  expect(out.includes("\u001b[1m")).toBe(hasColors);
});

describe("a process with an output", () => {
  // A file that is open for reading only.
  let readOnly: number;
  beforeAll(() => {
    readOnly = openSync(file, "r");
  });
  afterAll(() => closeSync(readOnly));

  it.each([[["check", file]], [["--help"]]])("that cannot be written exits with 74: %o", async (args) => {
    const { code, err } = await floodgateWithOutput(args, { out: readOnly });
    expect(err).toMatch(/^floodgate: standard output cannot be written: .+\n$/);
    expect(code).toBe(74);
  });

  it("that nobody reads exits as usual", async () => {
    expect(await floodgateWithOutput(["check", file], {})).toEqual({ code: 0, err: "" });
  });

  it("that nobody reads ends commands that run until they are stopped", async () => {
    const log = write("access.log", "");
    const server = await startRedis();
    onTestFinished(() => server.stop());
    await floodgateProcess(["push", file, "--redis", `redis://127.0.0.1:${server.port}`]);
    const endless = [
      ["top", "--every", "10ms", "--redis", `redis://127.0.0.1:${server.port}`],
      ["simulate", log, "--rules", file, "--follow", "--every", "10ms"],
    ];
    expect(await Promise.all(endless.map((args) => floodgateWithOutput(args, {})))).toMatchObject([{ code: 0 }, { code: 0 }]);
  });

  it("whose reader has stopped ends a gateway that is told to end", async () => {
    const rules = Array.from({ length: 3000 }, (_, i) => `  - { name: rule-${i}-${"x".repeat(100)}, key: ip, limit: 5, window: 1m }\n`);
    const many = write("many.yaml", `rules:\n${rules.join("")}`);
    const gateway = startFloodgate([
      "gateway",
      "--rules",
      many,
      "--upstream",
      "http://127.0.0.1:1",
      "--listen",
      "127.0.0.1:0",
      "--admin",
      "false",
      "--drain-ms",
      "0",
    ]);
    // The first line is longer than what a pipe holds.
    await gateway.printed("rule-1-");
    gateway.pause();
    gateway.stop("SIGTERM");
    expect(await gateway.exited).toBe(0);
  });

  it("for errors that cannot be written exits as usual", async () => {
    expect(await floodgateWithOutput(["chek"], { err: readOnly })).toEqual({ code: 64, err: "" });
  });
});
