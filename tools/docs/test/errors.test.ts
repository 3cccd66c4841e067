import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { documentOf, documents, repository } from "@floodgate/docs";
import { expect, it } from "vitest";

/** Environment variables of the command line and of the tests, which begin in the same way. */
const variables = ["ALL_RUNS", "FLOODGATE_CONFIG", "FLOODGATE_KEY_SECRET", "FLOODGATE_REDIS"];

const all = documents();
const page = documentOf("docs/errors.md");

const packages = join(repository, "packages");
/** The sources of the packages, without comments. */
const sources = readdirSync(packages).flatMap((name) => {
  const folder = join(packages, name, "src");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.m?ts$/.test(file))
    .map((file) => readFileSync(join(folder, file), "utf8").replace(/^\s*(?:\/\/|\/?\*).*$/gm, ""));
});

/** The codes in a text, each once. */
function codesIn(text: string): string[] {
  const found = [...text.matchAll(/(["'`])(FLOODGATE_[A-Z_]+)\1/g)].map(([, , code = ""]) => code);
  return [...new Set(found)].filter((code) => !variables.includes(code)).sort();
}

/** Every code of an error or a warning. */
const codes = codesIn(sources.join("\n"));
/** The codes that have a heading after this one. */
const describedFrom = (heading: string): string[] => {
  const headings = page.headings.map(({ text }) => text);
  return headings.slice(headings.indexOf(heading) + 1).filter((text) => text.startsWith("FLOODGATE_"));
};

it("docs/errors.md has a heading for every code of the sources, and for no other", () => {
  expect(describedFrom("Errors and warnings").sort()).toEqual(codes);
});

it("docs/errors.md has the codes of warnings under Warnings", () => {
  const errors = codesIn(sources.flatMap((source) => /export type ErrorCode =[^;]*;/.exec(source) ?? []).join("\n"));
  expect(errors).toContain("FLOODGATE_INVALID_OPTION");
  expect(describedFrom("Warnings").sort()).toEqual(codes.filter((code) => !errors.includes(code)));
});

it("docs/errors.md says something about each code", () => {
  const sections = page.text.split(/^### /m).slice(1);
  expect(sections.filter((section) => section.trim().split("\n").length < 3)).toEqual([]);
});

it("every code that a document names exists", () => {
  const known = new Set([...codes, ...variables]);
  // The settings of the gateway are variables too; `docs/gateway-settings.md` is written from them.
  const settings = documentOf("docs/gateway-settings.md").text;
  const wrong = all.flatMap(({ file, text }) =>
    text
      .split("\n")
      .flatMap((line, i) =>
        [...line.matchAll(/\bFLOODGATE_[A-Z_]*[A-Z]\b/g)]
          .filter(([code]) => !known.has(code) && !settings.includes(code))
          .map(([code]) => `${file}:${i + 1}: there is no ${code}`),
      ),
  );
  expect(wrong.join("\n")).toBe("");
});

it.each(variables)("the environment variable %s is documented", (variable) => {
  expect(all.some(({ file, text }) => file !== "docs/errors.md" && text.includes(variable))).toBe(true);
});
