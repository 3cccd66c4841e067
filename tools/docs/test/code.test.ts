import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { documents, repository } from "@floodgate/docs";
import { beforeAll, expect, it } from "vitest";
import { parseMarkdown } from "../src/markdown.js";
import { modulesOf } from "./code.js";

/** Its second block has a mistake in its second line. */
const wrong = parseMarkdown(
  "wrong.md",
  "# A\n\n```ts\nconst a = 1;\n```\n\n```ts\nconst b = a;\nconst c: string = b;\n```\n\n```ts\nconst = 1;\n```\n",
);

const pages = [...documents().filter(({ file }) => !file.startsWith("tools/")), wrong]
  .map((document) => ({ file: document.file, ...modulesOf(document) }))
  .filter(({ modules, faults }) => modules.length + faults.length > 0);

/** The modules are among the dependencies of this package, which are those of the pages. */
const folder = join(repository, "tools/docs/dist/blocks");

/** The compiler's errors by page. */
const errors = new Map<string, string[]>();

beforeAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const { name, code } of pages.flatMap(({ modules }) => modules)) {
    // It declares the same option of a route as @floodgate/fastify. The tests of tools/migration compile these blocks apart.
    if (!code.includes(' from "@fastify/rate-limit"')) writeFileSync(join(folder, name), code);
  }
  const options = {
    extends: "../../test/blocks/tsconfig.json",
    include: ["../../test/blocks", "."],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options));
  for (const line of (await compile()).split("\n")) {
    const [, path = "", at, code, text] = /^(.+)\((\d+),\d+\): error TS(\d+): (.*)$/.exec(line) ?? [];
    const name = path.split("/").at(-1) ?? "";
    const page = pages.find(({ modules }) => modules.some((module) => module.name === name));
    const block = page?.modules.find((module) => module.name === name)?.block;
    // JavaScript needs no types.
    if (page === undefined || block === undefined || (name.endsWith("js") && code?.startsWith("70"))) continue;
    errors.set(page.file, [...(errors.get(page.file) ?? []), `${page.file}:${block.line + Number(at) - 1}: ${text}`]);
  }
}, 120_000);

it("an error is reported with its line", () => {
  expect(pages.at(-1)?.faults).toEqual([expect.stringContaining("wrong.md:13: ")]);
  expect(errors.get("wrong.md")).toEqual([expect.stringContaining("wrong.md:9: Type 'number' is not assignable")]);
});

it.each(pages.slice(0, -1))("the code of $file compiles", ({ file, faults }) => {
  expect([...faults, ...(errors.get(file) ?? [])].join("\n")).toBe("");
});

/** Clients that emit "error" when a server goes away. Node ends a process in which nobody listens. */
const endsTheProcess = /import \{[^}]*\} from "(?:pg|redis)"/;

it("a client that would end the process when its server restarts has a listener for errors", () => {
  const clients = pages.flatMap(({ file, modules }) =>
    modules.filter(({ code }) => endsTheProcess.test(code)).map(({ code, block }) => ({ place: `${file}:${block.line}`, code })),
  );
  expect(clients.filter(({ code }) => !code.includes('.on("error", ')).map(({ place }) => place)).toEqual([]);
  expect(clients.length).toBeGreaterThan(1);
});

function compile(): Promise<string> {
  const tsc = join(repository, "node_modules/typescript/lib/tsc.js");
  return new Promise((resolve) =>
    execFile(process.execPath, [tsc, "-p", folder, "--pretty", "false"], { maxBuffer: 1e8 }, (_, out) => resolve(out)),
  );
}
