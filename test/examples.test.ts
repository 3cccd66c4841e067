import { existsSync, readdirSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const folder = join(root, "examples");
const examples = readdirSync(folder);
const list = readFileSync(join(root, "docs/examples.md"), "utf8");

interface PackageFile {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const packageFile = (path: string): PackageFile => JSON.parse(readFileSync(join(root, path, "package.json"), "utf8"));

/** What the modules of an example import, and from which file. */
function importsOf(example: string): { file: string; specifier: string }[] {
  const files = readdirSync(join(folder, example)).filter((file) => file.endsWith(".mjs") && !file.endsWith(".d.mts"));
  return files.flatMap((file) => {
    const source = readFileSync(join(folder, example, file), "utf8");
    const found = source.matchAll(/^(?:import|export) (?:[^;]*? from )?"([^"]+)";$|import\("([^"]+)"\)/gm);
    return [...found].map(([, one, other]) => ({ file, specifier: (one ?? other) as string }));
  });
}

/** They run in this repository only, and say so. */
const ofThisRepository = ["gateway/demo.mjs", "redis/find-redis.mjs", "rules/find-redis.mjs"];

it("the examples with Redis look for it in the same way", () => {
  const [one, other] = ["redis", "rules"].map((example) => readFileSync(join(folder, example, "find-redis.mjs"), "utf8"));
  expect(one).toBe(other);
});

describe.each(examples)("the example %s", (example) => {
  const { dependencies = {}, devDependencies = {} } = packageFile(`examples/${example}`);
  const needed = { ...dependencies, ...devDependencies };

  it("has a README, and is listed in the docs", () => {
    expect(existsSync(join(folder, example, "README.md"))).toBe(true);
    expect(list).toContain(`](../examples/${example}/README.md)`);
  });

  it("can be copied out of the repository: it names versions, and imports nothing else", () => {
    for (const { file, specifier } of importsOf(example)) {
      if (isBuiltin(specifier) || specifier.startsWith("node:") || specifier.startsWith("./")) continue;
      if (specifier.startsWith("../")) expect(ofThisRepository).toContain(`${example}/${file}`);
      else expect(Object.keys(needed)).toContain(specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/"));
    }
    for (const [name, version] of Object.entries(needed)) {
      expect(version).toMatch(/^\^\d+\.\d+\.\d+$/);
      if (!name.startsWith("@floodgate/")) continue;
      expect(version).toBe(`^${packageFile(`packages/${name.slice("@floodgate/".length)}`).version}`);
    }
  });

  it("listens on loopback only", () => {
    for (const file of readdirSync(join(folder, example)).filter((name) => name.endsWith(".mjs"))) {
      const source = readFileSync(join(folder, example, file), "utf8");
      for (const [call] of source.matchAll(/\.listen\(.*/g)) expect(call).toMatch(/127\.0\.0\.1|\bhost\b/);
    }
  });
});
