import { readFileSync } from "node:fs";
import { join } from "node:path";
import { algorithms } from "@floodgate/core/rules";
import { documentOf, documents, type MarkdownFile, type TableRow } from "@floodgate/docs";
import { rateLimit } from "@floodgate/express";
import { describe, expect, it } from "vitest";
import { repository } from "../src/documents.js";
import { allOptions, defaultIn, type Option, plainValue } from "./options.js";

const all = documents();

/** The tables of options of an entry point: in the README of its package, and for what that leaves out, in docs. */
function tablesFor(entry: string): TableRow[] {
  const [, name] = entry.split("/");
  return all.filter(({ file }) => file === `packages/${name}/README.md` || file.startsWith("docs/")).flatMap(({ rows }) => rows);
}

/** The cells of a row that name options: those below "option", or the first one. */
function optionCells({ cells, head }: TableRow): string[] {
  const below = cells.filter((_, i) => /\boptions?\b/.test(head[i] ?? ""));
  return below.length > 0 ? below : cells.slice(0, 1);
}

function names(row: TableRow, option: string): boolean {
  return optionCells(row).some((cell) => [...cell.matchAll(/`([^`]+)`/g)].some(([, code]) => code === option));
}

function faultOf(rows: readonly TableRow[], { name, default: value }: Option): string | undefined {
  const own = rows.filter((row) => names(row, name));
  if (own.length === 0) return `${name}: no table of options has it`;
  if (value === undefined) return undefined;
  const says = own.some(({ cells }) => new RegExp(`(?<![\\w.])${escaped(value)}(?![\\w.]*\\w)`).test(plainValue(cells.join(" | "))));
  return says ? undefined : `${name}: no table of options says that its default is ${value}`;
}

const entries = allOptions();

describe.each(entries)("$name of $entry", ({ entry, options }) => {
  const rows = tablesFor(entry);

  it("has all its options and their defaults in the docs", () => {
    expect(options.flatMap((option) => faultOf(rows, option) ?? []).join("\n")).toBe("");
  });

  it("has the options inside its options in the docs", () => {
    const missing = options.flatMap(({ name, inside }) =>
      inside.filter((one) => !all.some((page) => mentions(page, name, one))).map((one) => `${name}.${one}`),
    );
    expect(missing.join("\n")).toBe("");
  });
});

it("the README of core has each policy, and each option and method of a limiter", () => {
  const readme = documentOf("packages/core/README.md").text;
  const policies = Object.keys(algorithms).map((name) => name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()));
  const options = entries.find(({ entry, name }) => entry === "@floodgate/core" && name === "createLimiter")?.options ?? [];
  const { rows } = documentOf("docs/limiter.md");
  const methods = rows.filter(({ head }) => head[0] === "method").map(({ cells }) => /^`(\w+)\(/.exec(cells[0] ?? "")?.[1] ?? "");
  const words = [...policies, ...options.map(({ name }) => name), ...methods];
  expect(words.filter((word) => !readme.includes(`\`${word}\``))).toEqual([]);
  expect([policies.length, options.length, methods.length].every((count) => count > 7)).toBe(true);
});

it.each([
  ["@floodgate/express", "rateLimit", "docs/getting-started.md"],
  ["@floodgate/core", "createLimiter", "docs/limiter.md"],
  ["@floodgate/core", "limitFor", "docs/beyond-http.md"],
  ["@floodgate/store-redis", "redisStore", "docs/redis.md"],
])("the options of %s, %s, are all on its page, %s", (entry, name, file) => {
  const { options = [] } = entries.find((one) => one.entry === entry && one.name === name) ?? {};
  const { rows } = documentOf(file);
  expect(options.length).toBeGreaterThan(3);
  expect(options.map((option) => option.name).filter((option) => !rows.some((row) => names(row, option)))).toEqual([]);
});

it("the page of adapters has each member of a reader", () => {
  const api = readFileSync(join(repository, "test/api/core.txt"), "utf8");
  const [, body = ""] = /^interface RequestReader<Req> \{\n(.*?)^\}/ms.exec(api) ?? [];
  const members = [...body.matchAll(/^ {4}(?:readonly )?(\w+)/gm)].map(([, name = ""]) => name);
  const page = documentOf("docs/writing-an-adapter.md").text;
  expect(members).toContain("trustsProxy");
  expect(members.filter((name) => !new RegExp(`\`${name}[\`(]`).test(page))).toEqual([]);
});

it("the page of several limits has each option of a rule, and what it means beside the rules", () => {
  const messageOf = (make: () => unknown): string => {
    try {
      return `${make()}`;
    } catch (error) {
      return String(error);
    }
  };
  const listed = /The options are (.*)\./.exec(messageOf(() => rateLimit({ rules: [{ name: "a", misspelt: 1 } as never] })))?.[1] ?? "";
  const names = listed.split(", ");
  const [, section = ""] = /\n## Options of a rule\n(.*?)\n## /s.exec(documentOf("docs/several-limits.md").text) ?? [];
  const [own = "", beside = ""] = section.split("Beside `rules`");
  const without = (text: string, words: readonly string[]) => words.filter((name) => !text.includes(`\`${name}`));
  expect(names).toContain("limit");
  expect(without(own, names)).toEqual([]);
  expect(
    without(
      beside,
      names.filter((name) => !["name", "match", "headers", "grants", "refundWhen"].includes(name)),
    ),
  ).toEqual([]);
});

it("the functions that most apps call are among them", () => {
  const found = entries.map(({ entry, name }) => `${entry} ${name}`);
  const adapters = ["express", "koa", "hono"].map((name) => `@floodgate/${name} rateLimit`);
  expect(found).toEqual(expect.arrayContaining([...adapters, "@floodgate/core createLimiter", "@floodgate/store-redis redisStore"]));
});

it("a default is read in a docstring", () => {
  expect(defaultIn("How long. Default 10,000.")).toBe("10000");
  expect(defaultIn('One of them. Default `"allow"`.')).toBe("allow");
  expect(defaultIn("Whether. Default false: they are masked.")).toBe("false");
  expect(defaultIn("The share. Default 0.001.")).toBe("0.001");
  expect(defaultIn("A window. Default `1m`.")).toBe("1m");
  expect(defaultIn("Default: the limit.")).toBeUndefined();
});

/** Whether a page has an option inside another one: `{ ips: ["10.0.0.0/8"] }` near `exempt`. */
function mentions({ text }: MarkdownFile, option: string, inside: string): boolean {
  return new RegExp(`\\b${option}\\b[^]{0,300}\\b${inside}\\b`).test(text);
}

function escaped(text: string): string {
  return text.replace(/[^\w]/g, "\\$&");
}
