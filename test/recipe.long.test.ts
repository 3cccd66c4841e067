import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "./files.js";

// The recipe "A package" of CONTRIBUTING, in a copy of this repository: a copy of packages/koa with another name passes what packages/koa does.

const root = join(import.meta.dirname, "..");
const copy = temporaryFolder("recipe");
const [, recipe = ""] = /\*\*A package\*\*([\s\S]*?)\n\*\*/.exec(readFileSync(join(root, "CONTRIBUTING.md"), "utf8")) ?? [];

beforeAll(() => {
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], { cwd: root, encoding: "utf8" });
  for (const file of files.split("\0")) if (file !== "") cpSync(join(root, file), join(copy, file), { force: false });
});

function run(command: string): void {
  const [program = "", ...words] = command.split(" ");
  try {
    execFileSync(program, words, { cwd: copy, encoding: "utf8", stdio: "pipe", env: { ...process.env, npm_config_yes: "true" } });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command}: ${stdout}${stderr}`);
  }
}

/** Repeats the first line or lines of koa in a file for the new package. */
function repeat(file: string, koa: RegExp): void {
  expect(recipe).toContain(`\`${file}\``);
  const path = join(copy, file);
  const code = readFileSync(path, "utf8");
  expect(code).toMatch(koa);
  writeFileSync(
    path,
    code.replace(koa, (lines) => `${lines}${lines.replaceAll("koa", "koala")}`),
  );
}

it("a copy of packages/koa under another name passes all tests of packages", () => {
  const created = join(copy, "packages/koala");
  cpSync(join(copy, "packages/koa"), created, { recursive: true });
  for (const file of ["package.json", "README.md"]) {
    const path = join(created, file);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll("@floodgate/koa", "@floodgate/koala"));
  }
  repeat("tsconfig.build.json", / {4}\{\n {6}"path": "packages\/koa"\n {4}\},\n/);
  repeat("tsconfig.test.json", / {4}\{\n {6}"path": "packages\/koa"\n {4}\},\n/);
  repeat("test/layers.test.ts", / {2}koa: .*\n/);
  repeat(".changeset/config.json", / *"@floodgate\/koa",\n/);
  repeat("tools/docs/package.json", / *"@floodgate\/koa".*\n/);
  repeat("README.md", /\[`@floodgate\/koa`\]\(packages\/koa\/README\.md\), /);
  for (const command of ["npx pnpm@12 install --prefer-offline --no-frozen-lockfile", "npm run api"]) {
    expect(recipe).toContain(command.replace(/ --.*/, ""));
    run(command);
  }
  run("npx vitest run packages/koala test/layers.test.ts test/manifests.test.ts test/api.test.ts tools/docs");
}, 600_000);
