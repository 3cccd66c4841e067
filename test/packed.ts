import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

// The packages as they would be published, for tests that install them as users do.

export const root: string = join(import.meta.dirname, "..");
/** The folders of all packages. */
export const folders: readonly string[] = readdirSync(join(root, "packages")).sort();
export const manifests = folders.map((folder) => JSON.parse(readFileSync(join(root, "packages", folder, "package.json"), "utf8")));

/** What a user can import: each package, and its other entry points. */
export const entries: string[] = manifests.flatMap(({ name, exports }) =>
  Object.keys(exports)
    .filter((path) => !path.endsWith(".json"))
    .map((path) => `${name}${path.slice(1)}`),
);

/** Where `pack` puts the tarballs of packages: by name, as a package.json writes it. */
export function tarballsIn(folder: string, packages: readonly string[] = folders): Record<string, string> {
  const fileOf = (name: string) => `file:${join(folder, `floodgate-${name}-${manifests[0].version}.tgz`)}`;
  return Object.fromEntries(packages.map((name) => [`@floodgate/${name}`, fileOf(name)]));
}

/** Packs packages into a folder. Answers the tarballs by name. */
export async function pack(folder: string, packages: readonly string[] = folders): Promise<Record<string, string>> {
  const filters = packages.flatMap((name) => ["--filter", `./packages/${name}`]);
  await run("npx", ["--yes", "pnpm@12", "--recursive", ...filters, "pack", "--pack-destination", folder], root);
  return tarballsIn(folder, packages);
}

/** Installs what the package.json of a folder says, and more. */
export function install(folder: string, ...more: readonly string[]): Promise<string> {
  return run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", ...more], folder);
}

/** Runs a command in a folder. Answers what it printed, and fails with all that it said. */
export async function run(command: string, args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}): Promise<string> {
  // Of this repository's run, nothing may tell a package manager where it is.
  const others = /^(npm_(?!config_(registry|cache))|VITEST|NODE_ENV|NODE_OPTIONS)/i;
  const env = { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !others.test(name))), CI: "", ...more };
  try {
    return (await promisify(execFile)(command, args, { cwd, env, maxBuffer: 1e8 })).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(" ")}\n${stdout ?? error}\n${stderr ?? ""}`);
  }
}
