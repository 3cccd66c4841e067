import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { documents, repository } from "@floodgate/docs";
import { modulesOf } from "./code.js";

// The tests that docs/testing.md shows are tests of this file: importing their blocks defines them.

const page = documents().find(({ file }) => file === "docs/testing.md");
if (page === undefined) throw new Error("There is no docs/testing.md.");

const folder = join(repository, "tools/docs/dist/testing");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const { modules } = modulesOf(page);
for (const { name, code } of modules) writeFileSync(join(folder, name), code);
for (const { name } of modules) await import(join(folder, name));
