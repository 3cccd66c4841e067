import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const packages = join(import.meta.dirname, "..", "packages");

/** Which of our packages each may know. A new package gets its line here. */
const mayKnow: Record<string, readonly string[]> = {
  core: [],
  "store-memory": ["core"],
  "store-redis": ["core"],
  express: ["core", "store-memory"],
  koa: ["core", "store-memory"],
  hono: ["core", "store-memory"],
  conformance: ["core"],
  rules: ["core"],
  metrics: ["core"],
  cli: ["core", "rules", "store-memory", "store-redis"],
};

describe.each(readdirSync(packages))("packages/%s", (name) => {
  const allowed = mayKnow[name]?.map((known) => `@floodgate/${known}`);
  const ours = (names: Iterable<string>) => [...names].filter((other) => other.startsWith("@floodgate/"));

  it("depends on nothing above it", () => {
    const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(readFileSync(join(packages, name, "package.json"), "utf8"));
    const needed = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies });
    expect(allowed).toEqual(expect.arrayContaining(ours(needed)));
    if (name === "core") expect(needed).toEqual([]);
  });

  it("imports nothing above it", () => {
    const imported = imports(join(packages, name, "src"));
    expect(allowed).toEqual(expect.arrayContaining(ours(imported)));
    // No package and no Node built-in. Globals of Node are the compiler's to refuse: core is built with none of their types.
    if (name === "core") expect([...imported].filter((specifier) => !specifier.startsWith("."))).toEqual([]);
  });
});

/** What the sources of a folder import, tests and comments left out. */
function imports(folder: string): Set<string> {
  const found = new Set<string>();
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!/(?<!\.test)\.m?ts$/.test(file)) continue;
    const code = readFileSync(join(folder, file), "utf8").replace(/^\s*(?:\/\/|\/?\*).*$/gm, "");
    for (const [, specifier = ""] of code.matchAll(/\b(?:from|import|require)\b\s*\(?\s*["'`]([^"'`]+)/g)) found.add(specifier);
  }
  return found;
}
