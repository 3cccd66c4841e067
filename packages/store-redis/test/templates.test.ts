import { describe, expect, it } from "vitest";
import { twins } from "../src/algorithms.js";
import { lua } from "../src/lua.js";
import { Templates } from "../src/templates.js";

const half = "local function half_of(n)\n  local half = floor(n / 2)\n  return half\nend\n";

/**
 * What breaks the rules of src/templates.ts in a Lua text.
 * @param names outside of all functions, beside those of the text.
 * @param script that calls its templates.
 */
function mistakesIn(text: string, names: readonly string[] = [], script = ""): string[] {
  const code = text.replace(/--.*/g, "");
  const functions = /^local function (\w+)\((.*)\)\n([\s\S]*?)^end\n/gm;
  const templates = [...code.matchAll(functions)].map(([, name = "", parameters = "", body = ""]) => ({ name, parameters, body }));
  const outside = new Set([...names, ...namesIn(code.replace(functions, "").matchAll(/^local ([\w, ]+?)(?: =|$)/gm))]);
  const mistakes: string[] = [];
  for (const { name, parameters, body } of templates) {
    if (/\breturn\b/.test(body.replace(/ +return .*\n$/, ""))) mistakes.push(`${name} returns elsewhere than in its last line`);
    const own = [...parameters.split(", "), ...namesIn(body.matchAll(/\blocal ([\w, ]+?)(?: =|$)|\bfor (\w+) =/gm))];
    for (const local of own) if (outside.has(local)) mistakes.push(`${name} has a variable with a name from outside: ${local}`);
  }
  const called = new RegExp(`(?<!function )\\b(?:${templates.map(({ name }) => name).join("|")})\\(`, "g");
  for (const line of (code + script.replace(/--.*/g, "")).split("\n")) {
    const calls = line.match(called)?.length ?? 0;
    if (calls > 1 || (calls === 1 && !/^\s*(?:[\w, ]+ = )?\w+\(.*\)\s*$/.test(line)))
      mistakes.push(`No statement of its own: ${line.trim()}`);
  }
  return mistakes;
}

function namesIn(lists: Iterable<RegExpMatchArray>): string[] {
  return Array.from(lists, ([, several, one]) => several ?? one ?? "").flatMap((list) => list.split(", "));
}

describe("a template", () => {
  it("stands wherever it is called, also by another template", () => {
    const templates = new Templates();
    templates.take(`${half}local function quarter_of(n)\n  local part = half_of(n)\n  part = half_of(part)\n  return part\nend\n`);
    const inlined = templates.inline("local a = quarter_of(x + 1)\n");
    expect(inlined).not.toMatch(/(half|quarter)_of\(/);
    expect(inlined.match(/floor\(n \/ 2\)/g)).toHaveLength(2);
    expect(inlined).toMatch(/^local a do/);
  });

  it.each([
    ["returns early", "local function f(n)\n  if n then return 1 end\n  return 2\nend\nlocal a = f(1)\n", "f returns elsewhere"],
    ["is called in an expression", `${half}local a = 1 + half_of(1)\n`, "No statement of its own: local a = 1 + half_of(1)"],
    ["is called within another call", `${half}local a = half_of(half_of(1))\n`, "No statement of its own"],
    ["has a variable with a name from outside", `local half = 3\n${half}local a = half_of(1)\n`, "from outside: half"],
  ])("breaks the rules if it %s", (_, text, mistake) => {
    expect(mistakesIn(text)).toEqual([expect.stringContaining(mistake)]);
  });

  const textOf = (names: readonly string[]): string => names.map((name) => lua[name]).join("\n");
  const shared = ["prelude", "values", "debts", "shared-bucket", "held-units"];

  it.each(twins.map((twin) => [twin.name, twin] as const))("of %s keeps the rules", (name, { parameters, edges, cells }) => {
    const ofEdges = edges === undefined ? [] : ["edge_1", "edge_2", "edge_3", "edge_4"];
    const names = [...parameters, ...ofEdges, ...cells.map((cell) => cell.toUpperCase())];
    expect(mistakesIn(textOf([...shared, "windows", name, "lean-limit"]), names)).toEqual([]);
  });

  it("is called as the rules say by each script", () => {
    expect(mistakesIn(textOf(shared), [], textOf(["lean", "batch", "holding", "blocks", "charges", "steps"]))).toEqual([]);
  });
});
