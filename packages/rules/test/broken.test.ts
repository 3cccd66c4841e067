import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeProblem, parseRules, RulesError } from "../src/index.js";

/** Each `.yaml` file is invalid. The `.txt` file beside it lists the expected problems. */
const folder = join(__dirname, "broken");
const names = readdirSync(folder).flatMap((file) => (file.endsWith(".yaml") ? [file.replace(".yaml", "")] : []));

describe("a file with mistakes", () => {
  it("is one of more than forty in test/broken", () => {
    expect(names.length).toBeGreaterThan(40);
  });

  it.each(names)("is refused with the position of each mistake: %s", (name) => {
    const file = `${name}.yaml`;
    const expected = readFileSync(join(folder, `${name}.txt`), "utf8").trim();
    const error = errorOf(readFileSync(join(folder, file), "utf8"), file);
    expect(error.code).toBe("FLOODGATE_INVALID_RULES");
    expect(error.problems.map((problem) => describeProblem(file, problem)).join("\n")).toBe(expected);
  });
});

describe("characters that are not seen", () => {
  it.each([
    ["line ends of an old Mac", "rules:\r  - name: a\r", "1:7: A carriage return stands here without a line feed."],
    ["line ends that are converted twice", "rules:\r\r\n  - name: a\r\r\n", "1:7: A carriage return stands here without a line feed."],
    ["a null", "rules:\n  - name: a\u0000\n", "2:12: A control character stands here. Remove it."],
    ["a line separator", "rules:\n  - name: a\u2028    limit: 5\n", "2:12: A no-break space, or another invisible character,"],
    ["a paragraph separator in a name", "rules:\n  - na\u2029me: a\n", "2:7: A no-break space, or another invisible character,"],
    ["a line separator after quotes", 'rules: ["a"\u2028]\n', "1:12: A no-break space, or another invisible character,"],
    ["a control character in quotes", 'rules: ["a\u0001"]\n', "1:11: A control character stands here. Remove it."],
    [
      "a no-break space",
      "rules:\n  - name: a\n    limit:\u00a05\n    window: 1m\n",
      "3:11: A no-break space, or another invisible character,",
    ],
  ])("are named with their place: %s", (_, text, message) => {
    const { problems } = errorOf(text, "a");
    expect(problems.map((problem) => describeProblem("a", problem).slice(2))).toEqual([expect.stringContaining(message)]);
  });

  it("are allowed in comments and strings", () => {
    for (const quote of ['"', "'"]) {
      const keys = `[${quote}a\u2028\u2029\u007f\u0085\u00a0b${quote}]`;
      const { rules } = parseRules(`# \u2028\nrules: [{ name: a, limit: 5, window: 1m, key: user, exempt: { keys: ${keys} } }]\n`);
      expect(rules[0]?.exempt?.keys).toEqual(["a\u2028\u2029\u007f\u0085\u00a0b"]);
    }
    expect(parseRules("# a\u00a0b\r\nrules:\r\n  - { name: a, limit: 5, window: 1m }\r\n", "a")).toBeDefined();
  });
});

it("a long list in brackets that is not indented is refused, and overflows no stack", () => {
  const text = `rules: [\n${"{name: a, limit: 5, window: 1m},\n".repeat(20_000)}]\n`;
  expect(errorOf(text, "a").message).toBe("a:2:1: Indent what stands in brackets by at least one space.");
});

describe("the message of a RulesError", () => {
  it("has a line for each problem", () => {
    const text = "rules:\n  - { name: a, limit: -1, window: 1m }\n  - { name: b, limt: 5 }\n";
    const error = errorOf(text, "limits.yaml");
    expect(error.message.split("\n")).toEqual(error.problems.map((problem) => describeProblem("limits.yaml", problem)));
    expect(error.problems.map(({ line, column, path }) => ({ line, column, path }))).toEqual([
      { line: 2, column: 23, path: ["rules", 0, "limit"] },
      { line: 3, column: 16, path: ["rules", 1, "limt"] },
    ]);
    expect(error.at).toEqual(["rules", 0, "limit"]);
  });

  it("shows at most 100 problems", () => {
    const error = errorOf(`rules:\n${"  - 1\n".repeat(150)}`, "limits.yaml");
    expect(error.problems).toHaveLength(150);
    expect(error.message.split("\n")).toHaveLength(101);
    expect(error.message).toMatch(/\n\.\.\. and 50 more\.$/);
  });
});

describe("a text that would take long to parse", () => {
  const maxBytes = 2 ** 20;

  it.each([
    ["more than a megabyte", `#${"x".repeat(maxBytes)}`, /^a:1:1: The text has 1048577 bytes, above the maximum of 1048576/],
    ["brackets", "[".repeat(maxBytes), /^a:1:1: Too many brackets/],
    ["closing brackets", "]".repeat(maxBytes), /^a:1:1: Too many brackets/],
    ["commas", `rules:\n  [ ${",\n".repeat(maxBytes / 3)}`, /^a:2:3: Too many brackets/],
    ["a thousand levels of indentation", Array.from({ length: 1000 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"), /nested/],
  ])("is refused: %s", (_, text, message) => {
    expect(errorOf(text, "a").message).toMatch(message);
  });

  it("is accepted if it is only long", () => {
    const rules = Array.from({ length: 2000 }, (_, i) => `  - { name: r${i}, limit: 1, window: 1m }\n`);
    expect(parseRules(`rules:\n${rules.join("")}`).rules).toHaveLength(2000);
  });
});

it("a text that is not UTF-8 is refused", () => {
  const latin1 = Buffer.from("rules: [{ name: größe, limit: 1, window: 1m }]", "latin1");
  expect(errorOf(latin1.toString("utf8"), "a").message).toBe("a:1:19: The text is not valid UTF-8. Save the file as UTF-8.");
  const utf16 = Buffer.from("rules:\n", "utf16le");
  for (const bytes of [utf16, Buffer.from(utf16).swap16()]) {
    expect(errorOf(bytes.toString("utf8"), "a").message).toBe("a:1:1: The text is not valid UTF-8. Save the file as UTF-8.");
  }
});

it("parseRules refuses a value that is not a string", () => {
  expect(() => parseRules(undefined as never)).toThrow(/`text` must be a string of YAML or JSON, but was undefined/);
});

function errorOf(text: string, file: string): RulesError {
  try {
    parseRules(text, file);
  } catch (error) {
    if (error instanceof RulesError) return error;
    throw error;
  }
  throw new Error(`${file} is valid.`);
}
