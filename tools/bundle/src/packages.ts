import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of all published packages. */
export const packages: string = join(dirname(fileURLToPath(import.meta.url)), "../../../packages");

/** A package as it is bundled. */
export interface Package {
  /** The name of its folder. */
  readonly folder: string;
  readonly path: string;
  /** Files of `dist` that users import, without the ending: `index`. */
  readonly entries: readonly string[];
  /** Files of `dist` that are run: a command, or a worker thread. */
  readonly programs: readonly string[];
  /** Packages that become part of the bundle, because users would install far more than is used. */
  readonly inlined: readonly string[];
  /** Whether there are ES modules for the bundlers of apps, which take only what an app uses. */
  readonly modules: boolean;
}

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly module?: string; readonly require?: { readonly default: string } }>>;
  readonly bin?: Readonly<Record<string, string>>;
}

/** Run by a package itself, so that no `package.json` names them. */
const workers: Readonly<Record<string, readonly string[]>> = { rules: ["parse-worker"] };

const inlined: Readonly<Record<string, readonly string[]>> = {
  dashboard: ["lru-cache", "zod"],
  rules: ["zod"],
  simulator: ["tinyqueue"],
  "store-database": ["lru-cache"],
  "store-redis": ["lru-cache"],
};

/** What is bundled, as each `package.json` says it. */
export function publishedPackages(): readonly Package[] {
  return readdirSync(packages).map((folder) => {
    const path = join(packages, folder);
    const { exports, bin = {} } = JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as Manifest;
    const targets = Object.values(exports).flatMap((target) => (typeof target === "string" ? [] : [target]));
    return {
      folder,
      path,
      entries: targets.map(({ require }) => nameOf(require?.default)),
      programs: [...Object.values(bin).map(nameOf), ...(workers[folder] ?? [])],
      inlined: inlined[folder] ?? [],
      modules: targets.some(({ module }) => module !== undefined),
    };
  });
}

function nameOf(file = ""): string {
  const [, name] = /^\.\/dist\/([\w-]+)\.js$/.exec(file) ?? [];
  if (name === undefined) throw new Error(`"${file}" in package.json must be a file of dist: "./dist/index.js".`);
  return name;
}
