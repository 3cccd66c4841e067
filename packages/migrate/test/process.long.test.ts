import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, it } from "vitest";

const main = join(__dirname, "..", "dist", "main.js");
const folder = mkdtempSync(join(tmpdir(), "floodgate-migrate-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const small = 'import rateLimit from "express-rate-limit";\nrateLimit();\n';
/** It fits into a block of `ulimit`, and its new code does not. */
const growing = small + "rateLimit();\n".repeat(20);
const files = { "1.js": small, "2.js": growing, "3.js": small };

beforeEach(() => {
  for (const [name, code] of Object.entries(files)) writeFileSync(join(folder, name), code);
});

function changed(): string[] {
  return Object.entries(files).flatMap(([name, code]) => (readFileSync(join(folder, name), "utf8") === code ? [] : name));
}

function shell(line: string) {
  const { status, stdout, stderr } = spawnSync("bash", ["-c", line, process.execPath, main], { cwd: folder, encoding: "utf8" });
  return { status, stdout, stderr };
}

it("a file that cannot be written whole, as on a full disk, keeps its text, and the others are written", () => {
  const { status, stderr } = shell("ulimit -f 1; exec $0 $1 express-rate-limit '*.js' --write");
  expect([status, stderr]).toEqual([1, "floodgate-migrate: 2.js: EFBIG: file too large, write.\n"]);
  expect(changed()).toEqual(["1.js", "3.js"]);
});

it.runIf(process.platform === "linux")("a file that cannot be read leaves the others alone", () => {
  const { status, stderr } = shell("$0 $1 express-rate-limit 1.js /proc/self/mem 3.js --write");
  expect([status, stderr]).toEqual([1, "floodgate-migrate: /proc/self/mem: EIO: i/o error, read.\n"]);
  expect(changed()).toEqual(["1.js", "3.js"]);
});

it("a reader who stops to read prevents nothing, and gets no stack", () => {
  expect(shell("$0 $1 express-rate-limit '*.js' --write | true; exit $PIPESTATUS")).toEqual({ status: 0, stdout: "", stderr: "" });
  expect(changed()).toEqual(["1.js", "2.js", "3.js"]);
});

it.runIf(process.platform === "linux")("says that standard output cannot be written", () => {
  const { status, stderr } = shell("$0 $1 express-rate-limit '*.js' > /dev/full");
  expect([status, stderr]).toEqual([74, expect.stringMatching(/^floodgate-migrate: standard output cannot be written: ENOSPC.*\.\n$/)]);
});
