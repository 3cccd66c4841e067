import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const packages = ["core", "store-memory"];
/** Names the folder with the packed packages to child processes. */
const variable = "FLOODGATE_BENCH_PACKED";

/** Packs the packages that decide in process, and unpacks them as npm installs them, for the child processes of the benchmark. */
export function pack() {
  const folder = mkdtempSync(join(tmpdir(), "floodgate-bench-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const name of packages) {
    const target = join(folder, "node_modules", "@floodgate", name);
    const tarball = join(folder, `${name}.tgz`);
    const cwd = fileURLToPath(new URL(`../../packages/${name}`, import.meta.url));
    execFileSync("npx", ["--yes", "pnpm@12", "pack", "--out", tarball], { cwd, stdio: ["ignore", "ignore", "inherit"] });
    mkdirSync(target, { recursive: true });
    execFileSync("tar", ["-xzf", tarball, "-C", target, "--strip-components=1"]);
  }
  process.env[variable] = folder;
}

/** A package as users install it, if `pack` has packed it; else the package of this repository. */
export function load(name) {
  const folder = process.env[variable];
  return createRequire(folder === undefined ? import.meta.url : join(folder, "index.js"))(name);
}
