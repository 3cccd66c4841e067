import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { bundlePage, pages } from "./index.js";

// Writes the pages of a build; with `--all` those in the repository too.

async function main(): Promise<void> {
  const wanted = process.argv.includes("--all") ? [...pages.built, ...pages.committed] : pages.built;
  for (const { source, file } of wanted) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, await bundlePage(source));
  }
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
