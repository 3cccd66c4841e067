import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const codesIn = (text: string): string[] => text.match(/FLOODGATE_[A-Z_]+\b/g) ?? [];
/** The command line and the gateway read these from the environment. */
const variables = ["FLOODGATE_CONFIG", "FLOODGATE_KEY_SECRET", "FLOODGATE_LISTEN", "FLOODGATE_REDIS", "FLOODGATE_TRUSTED_PEERS"];

test("docs/errors.md says of every warning in the sources what is wrong", () => {
  const sources = readdirSync(join(root, "packages"))
    .map((name) => join(root, "packages", name, "src"))
    .flatMap((folder) => readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)))
    .filter((path) => path.endsWith(".ts"))
    .map((path) => readFileSync(path, "utf8"));
  const errors = sources.flatMap((source) => codesIn(/export type ErrorCode =[^;]*;/.exec(source)?.[0] ?? ""));
  const warnings = new Set(sources.flatMap((source) => codesIn(source.match(/(["'`])FLOODGATE_[A-Z_]+\1/g)?.join() ?? "")));
  for (const code of [...errors, ...variables]) warnings.delete(code);
  expect(errors).toContain("FLOODGATE_INVALID_OPTION");
  const page = readFileSync(join(root, "docs", "errors.md"), "utf8");
  const headings = page.slice(page.indexOf("## Warnings")).matchAll(/^### (FLOODGATE_[A-Z_]+)$/gm);
  expect([...headings].map(([, code]) => code).sort()).toEqual([...warnings].sort());
});
