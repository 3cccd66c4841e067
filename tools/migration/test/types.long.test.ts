import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { Page } from "./page.js";

const root = join(import.meta.dirname, "..", "..", "..");
/** In this package, so that modules find the libraries that it installs. */
const folder = join(import.meta.dirname, "..", "dist", "types");

afterAll(() => rmSync(folder, { recursive: true, force: true }));

// Each side alone: two libraries declare options of a Fastify route.
it.each(["before", "after"])(
  "the code of every page type-checks, %s",
  (side) => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const names = readdirSync(join(root, "docs/migrating")).flatMap((file) => /^from-(.*)\.md$/.exec(file)?.[1] ?? []);
    expect(names).not.toEqual([]);
    for (const name of names) {
      const { blocks } = new Page(name);
      for (const [i, { info, text }] of blocks.entries()) {
        if (info === `ts ${side}`) writeFileSync(join(folder, `${name}-${i}.mts`), text);
      }
    }
    const compilerOptions = {
      ...{ target: "es2022", module: "nodenext", strict: true, noEmit: true, skipLibCheck: true, esModuleInterop: true },
      ...{
        experimentalDecorators: true,
        noPropertyAccessFromIndexSignature: true,
        types: ["node"],
        typeRoots: [join(root, "node_modules/@types")],
      },
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.mts"] }));
    const tsc = join(dirname(createRequire(join(root, "package.json")).resolve("typescript/package.json")), "bin", "tsc");
    try {
      execFileSync(process.execPath, [tsc, "-p", folder], { encoding: "utf8" });
    } catch (error) {
      expect((error as { stdout: string }).stdout).toBe("");
    }
  },
  240_000,
);
