import { describe, expect, it } from "vitest";
import { Templates } from "../src/templates.js";

const half = "local function half_of(n)\n  local half = floor(n / 2)\n  return half\nend\n";

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
    [
      "returns early",
      "local function f(n)\n  if n then return 1 end\n  return 2\nend\n",
      "local a = f(1)\n",
      /f returns elsewhere than in its last line/,
    ],
    ["is called in an expression", half, "local a = 1 + half_of(1)\n", /half_of is not a statement on a line of its own/],
    [
      "has a variable with a name from outside",
      `local half = 3\n${half}`,
      "local a = half_of(1)\n",
      /half_of has a variable of its own that is called half/,
    ],
  ])("throws if it %s", (_, text, call, problem) => {
    expect(() => {
      const templates = new Templates();
      templates.take(text);
      templates.inline(call);
    }).toThrow(problem);
  });
});
