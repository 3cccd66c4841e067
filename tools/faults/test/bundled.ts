import { join, parse } from "node:path";
import { buildSync } from "esbuild";

/** Bundles a program of this folder for Node, which runs it on the built packages. */
export function bundled(program: string): string {
  const outfile = join(import.meta.dirname, "../dist", `${parse(program).dir}.mjs`);
  buildSync({
    entryPoints: [join(import.meta.dirname, program)],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
  });
  return outfile;
}
