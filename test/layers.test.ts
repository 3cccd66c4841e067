import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const packages = join(root, "packages");

/** What pages draw with, which the build bundles. */
const pages = ["pages/format", "pages/ticks"];

/** Which of our packages each may know, and by which entry points. A new package gets its line here. */
const mayKnow: Record<string, readonly string[]> = {
  core: [],
  "store-memory": ["core", "core/store"],
  "store-database": ["core", "core/store"],
  "store-redis": ["core", "core/store"],
  "store-cluster": ["core", "core/store", "core/rules", "store-memory"],
  express: ["core", "core/adapter", "store-memory"],
  fastify: ["core", "core/adapter", "store-memory"],
  koa: ["core", "core/adapter", "store-memory"],
  hono: ["core", "core/adapter", "store-memory"],
  nestjs: ["core", "core/adapter", "express", "fastify", "store-memory"],
  node: ["core", "core/adapter", "store-memory"],
  fetch: ["core", "core/adapter", "store-memory"],
  conformance: ["core", "core/store", "core/adapter", "core/rules"],
  rules: ["core", "core/store", "core/rules"],
  metrics: ["core", "core/rules"],
  dashboard: ["core", "core/store", "core/adapter", "core/rules", ...pages],
  simulator: ["core", "core/store", "core/adapter", "core/rules", "rules", "store-memory", ...pages],
  gateway: [
    ...["core", "core/store", "core/adapter", "core/rules", "store-memory", "store-redis", "rules"],
    ...["metrics", "metrics/prometheus", "dashboard", "dashboard/hono"],
  ],
  testing: ["core", "core/store"],
  migrate: [],
  cli: [
    "core",
    "core/store",
    "core/adapter",
    "core/rules",
    "rules",
    "simulator",
    // Loaded if it is installed.
    "gateway",
    "gateway/settings",
    "store-memory",
    "store-redis",
    ...["d1", "libsql", "mysql", "postgres", "sqlite"].map((driver) => `store-database/${driver}`),
    "store-database",
  ],
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

/** Programs, the report that a program writes, and the vectors for authors of stores. */
const readFiles = ["cli", "conformance", "simulator"];

it.each(readdirSync(packages).filter((name) => !readFiles.includes(name)))(
  "packages/%s reads no file beside its JavaScript, so that an app can be bundled into one file",
  (name) => {
    const sources = readdirSync(join(packages, name, "src"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    const reading = sources.filter((file) => readFileSync(join(packages, name, "src", file), "utf8").includes("__dirname"));
    // It parses long rules without its worker too.
    expect(reading).toEqual(name === "rules" ? ["parse-async.ts"] : []);
  },
);

describe("the entry points of core", () => {
  const source = join(packages, "core", "src");
  const entries = readdirSync(source).filter((file) => file.endsWith(".ts"));

  it("are named after who imports them", () => {
    expect(entries.sort()).toEqual(["adapter.ts", "index.ts", "rules.ts", "store.ts"]);
  });

  it.each(entries)("%s holds nothing but exports", (file) => {
    const code = readFileSync(join(source, file), "utf8").replace(/^\/\/.*$/gm, "");
    expect(code.replace(/export (?:type )?\{[^}]*\} from "\.\/[a-z]+\/[\w-]+\.js";/g, "").trim()).toBe("");
  });

  it("index.ts exports at most 50 names", () => {
    const code = readFileSync(join(source, "index.ts"), "utf8");
    const names = [...code.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, list = ""]) =>
      list.split(",").filter((name) => name.trim() !== ""),
    );
    expect(names.length).toBeLessThanOrEqual(50);
  });
});

it.each(["packages", "tools"].flatMap((kind) => readdirSync(join(root, kind)).map((name) => `${kind}/${name}`)))(
  "no files of %s import each other in a circle, types and tests included",
  (folder) => {
    const files = ["src", "test"].flatMap((part) => sourcesIn(join(root, folder, part)));
    const graph = new Map(files.map((file) => [file, importedFiles(file)]));
    expect(files.filter((file) => reaches(graph, file)).map((file) => relative(root, file))).toEqual([]);
  },
);

it("no helper of tests registers hooks by itself: files that share their modules load it once, so its hooks run in the first of them only", () => {
  const helpers = ["packages", "tools"].flatMap((kind) =>
    readdirSync(join(root, kind)).flatMap((name) => sourcesIn(join(root, kind, name, "test")).filter((file) => !file.endsWith(".test.ts"))),
  );
  const hooks = /^(?:before|after)(?:Each|All)\(/m;
  expect(helpers.filter((file) => hooks.test(readFileSync(file, "utf8"))).map((file) => relative(root, file))).toEqual([]);
});

function sourcesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter((file) => /\.ts$/.test(file)).map((file) => join(folder, file));
}

/** The files that one imports by their paths. */
function importedFiles(file: string): string[] {
  const code = readFileSync(file, "utf8");
  return [...code.matchAll(/^(?:import|export|\}) .*"(\.[^"]+)\.js";$/gm)].map(([, path = ""]) => join(dirname(file), `${path}.ts`));
}

/** Whether a file imports itself by way of others. */
function reaches(graph: ReadonlyMap<string, readonly string[]>, file: string): boolean {
  const seen = new Set<string>();
  const next = [...(graph.get(file) ?? [])];
  for (let at = next.pop(); at !== undefined; at = next.pop()) {
    if (at === file) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    next.push(...(graph.get(at) ?? []));
  }
  return false;
}

/** What the sources of a folder import, tests and comments left out. */
function imports(folder: string): Set<string> {
  const found = new Set<string>();
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    if (!/(?<!\.test)\.m?ts$/.test(file)) continue;
    const code = readFileSync(join(folder, file), "utf8").replace(/^\s*(?:\/\/|\/?\*).*$/gm, "");
    for (const [, specifier = ""] of code.matchAll(/(?<!["'`])\b(?:from|import|require)\b\s*\(?\s*["'`]([^"'`]+)/g)) found.add(specifier);
  }
  return found;
}
