import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect, it } from "vitest";

// Runs the built tool, because only built code is counted.
const main = join(import.meta.dirname, "../dist/main.js");
const run = promisify(execFile);

it("counts the calls and modules of one request, and lists them", async () => {
  const { stdout } = await run(process.execPath, [main, "--only", "koa, one line, denied", "--list"]);
  expect(stdout).toMatch(/^koa, one line, denied +\d+ calls in \d+ modules\n/);
  expect(stdout).toContain("koa/src/rate-limit: ");
  expect(stdout).toContain("core/src/");
});

it.each([
  ["express, one line, allowed", 32],
  ["express, one line, denied", 40],
  ["express, three rules with a ban, denied", 150],
])("%s: at most %i calls", async (name, most) => {
  const { stdout } = await run(process.execPath, [main, "--only", name]);
  expect(Number(/(\d+) calls/.exec(stdout)?.[1])).toBeLessThanOrEqual(most);
});

it("rejects an unknown option and prints its usage", async () => {
  await expect(run(process.execPath, [main, "--onyl", "koa"])).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining("Usage:"),
  });
});

it("ends without an error if its reader has left", async () => {
  const child = spawn(process.execPath, [main, "--only", "koa, one line"], { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  const [[code], errors] = await Promise.all([once(child, "close"), text(child.stderr)]);
  expect([code, errors]).toEqual([0, ""]);
});
