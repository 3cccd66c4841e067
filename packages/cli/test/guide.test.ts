import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { floodgate } from "./command.js";
import { tempFolder } from "./files.js";

// Runs docs/choosing-an-algorithm.md: each command on the sample log, one after the other, and compares the outputs that the guide shows.

const root = join(__dirname, "../../..");
const guide = readFileSync(join(root, "docs/choosing-an-algorithm.md"), "utf8");
const command = "npx @floodgate/cli ";

/** The blocks of code: `sh` is run, `yaml limits.yaml` is written to that file, `text` and `yaml` are what the command before has written. */
const blocks = [...guide.matchAll(/^```(\w+) ?(\S*)\n(.*?)^```$/gms)].map(([, kind = "", file = "", text = ""]) => ({ kind, file, text }));

const folder = tempFolder();
const before = process.cwd();

// A thread cannot change its folder, so this file runs in a process: see vitest.config.ts.
beforeAll(() => {
  copyFileSync(join(root, "packages/simulator/test/data/access-log.txt"), folder.path("access.log"));
  process.chdir(folder.path("."));
});

afterAll(() => process.chdir(before));

it("the guide's commands run, and write what it shows", async () => {
  let written = "";
  let shown = 0;
  for (const { kind, file, text } of blocks) {
    if (file !== "") folder.write(file, text);
    else if (kind === "sh") for (const line of text.trim().split("\n")) written = await runLine(line);
    else if (kind === "text" || kind === "yaml") {
      shown++;
      for (const part of text.split(/^…\n/m)) expect(`${written}\n`).toContain(part);
    }
  }
  expect(shown).toBe(5);
  expect(readFileSync(folder.path("report.html"), "utf8")).toContain("75.97.9.59");
}, 60_000);

/** Runs a command as a shell would, and returns what it has written to its output or to the file after `>`. */
async function runLine(line: string): Promise<string> {
  expect(line.startsWith(command), line).toBe(true);
  const [words = "", file] = line.slice(command.length).split(" > ");
  const args = [...words.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  const { code, out, err } = await floodgate(args);
  expect({ code, err: err.replace("floodgate: the report is in report.html\n", "") }, line).toEqual({ code: 0, err: "" });
  if (file !== undefined) folder.write(file, out);
  return out;
}

describe("the guide", () => {
  it("has a step for each part of the work", () => {
    for (const words of ["--suggest", "--compare", "--html", "check", "mode: shadow"]) expect(guide).toContain(words);
  });

  it("links to files that exist", () => {
    const links = [...guide.matchAll(/\]\(([^)#]+)[^)]*\)|^\[\w+\]: ([^#\n]+)/gm)].map(
      ([, inline, reference]) => inline ?? reference ?? "",
    );
    expect(links.length).toBeGreaterThan(5);
    for (const link of links) expect(existsSync(join(root, "docs", link)), link).toBe(true);
  });
});
