import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { documentOf, repository } from "@floodgate/docs";
import { modulesOf } from "./code.js";

// The tests that docs/testing.md shows are tests of this file: importing their blocks defines them.

const folder = join(repository, "tools/docs/dist/testing");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const { modules } = modulesOf(documentOf("docs/testing.md"));
for (const { name, code } of modules) writeFileSync(join(folder, name), code);
for (const { name } of modules) await import(join(folder, name));
