import { LineCounter, parseDocument } from "yaml";
import type { Path, RulesProblem } from "./rules-error.js";
import { invisibleHere, toValue } from "./yaml-values.js";

/** A YAML text as plain data. */
export interface YamlText {
  /** Undefined if the text is not valid YAML: then `problems` says why. */
  readonly value: unknown;
  readonly problems: readonly RulesProblem[];
  /** A problem with the value at a path, at the position of that value or of its nearest existing ancestor. */
  problemAt(path: Path, message: string): RulesProblem;
  /** A problem with the key at a path, at the position of the key. */
  problemAtKey(path: Path, message: string): RulesProblem;
}

/** Enough for thousands of rules, and small enough to parse between two requests. */
export const maxBytes: number = 2 ** 20;

const unreadable: readonly (readonly [pattern: RegExp, message: string])[] = [
  // In UTF-16, one of the first two bytes is zero.
  [/\ufffd|^.?\0/, "The text is not valid UTF-8. Save the file as UTF-8."],
  [/\r(?!\n)/, "A carriage return stands here without a line feed. Save it with line ends of Unix or Windows."],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: neither YAML nor JSON allows these anywhere
  [/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/, "A control character stands here. Remove it."],
  // The parser would take minutes or all memory.
  [/(?:[[\]{},]\s*){60}/, "Too many brackets and commas in a row start here."],
  // The parser's messages would be about the text that follows.
  [/^<{7} /m, "A merge conflict starts here. Keep one version, without the lines <<<<<<<, ======= and >>>>>>>."],
];

/** Reads YAML 1.2, which includes JSON, and the position of each value. Only plain data is accepted: tags construct no objects. */
export function readYaml(text: string): YamlText {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) return refused([problem(`The text has ${bytes} bytes, above the maximum of ${maxBytes}.`)]);
  for (const [pattern, message] of unreadable) {
    const found = problemIn(text, pattern, message);
    if (found !== undefined) return refused([found]);
  }
  const lines = new LineCounter();
  // `toValue` finds duplicate keys. The parser would compare each key with all keys before it.
  const options = { schema: "core", resolveKnownTags: false, stringKeys: true, uniqueKeys: false, prettyErrors: false } as const;
  let document: ReturnType<typeof parseDocument>;
  try {
    document = parseDocument(text, { ...options, lineCounter: lines });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // The parser nests what stands in brackets without an indentation, and runs out of stack.
    const bracket = problemIn(text, /(?<=\n)[[\]{}]/, "Indent what stands in brackets by at least one space.");
    return refused([bracket ?? problem(ownMessages["RESOURCE_EXHAUSTION"] as string)]);
  }
  const problemOf = (offset: number, message: string, path: Path): RulesProblem => {
    const { line, col } = lines.linePos(offset);
    return problem(message, path, Math.max(line, 1), Math.max(col, 1));
  };

  const syntax = [...document.errors, ...document.warnings];
  if (syntax.length > 0) {
    // Only the first error of a line is shown: the others usually follow from it, as all do once the parser has lost its place.
    const first = new Map<number, RulesProblem>();
    const texts = text.split("\n");
    for (const { code, message, pos } of syntax) {
      if (first.size > 0 && message.includes("in YAML stream")) continue;
      const found = problemOf(pos[0], ownMessages[code] ?? `${message}.${advice(code, message)}`, []);
      const space = otherSpace.exec(texts[found.line - 1] ?? "");
      const other = space && problem(invisibleHere, [], found.line, space.index + 1);
      if (!first.has(found.line)) first.set(found.line, other ?? found);
    }
    return refused([...first.values()]);
  }
  const { value, mistakes, offsetOf } = toValue(document.contents);
  return {
    value,
    problems: mistakes.map(({ offset, message, path }) => problemOf(offset, message, path)),
    problemAt: (path, message) => problemOf(offsetOf(path, "value"), message, path),
    problemAtKey: (path, message) => problemOf(offsetOf(path, "key"), message, path),
  };
}

/** Spaces that look like a space, and separate nothing in YAML. */
const otherSpace = /[\u00a0\u2000-\u200f\u2028\u2029\u202f\u205f\u3000\ufeff]/;

/** A problem where a pattern first matches. */
function problemIn(text: string, pattern: RegExp, message: string): RulesProblem | undefined {
  const found = pattern.exec(text);
  if (found === null) return undefined;
  const before = text.slice(0, found.index).split("\n");
  return problem(message, [], before.length, (before.at(-1) as string).length + 1);
}

/** Replaces messages of the parser that would not help. */
const ownMessages: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "A second YAML document starts here. Remove the ---, or use two files.",
  NON_STRING_KEY: "A key must be a string, not a list, a map or an alias.",
  RESOURCE_EXHAUSTION: "This is nested too deeply.",
  TAG_RESOLVE_FAILED:
    "Remove this tag. Only !!str, !!int, !!float, !!bool, !!null, !!map and !!seq are allowed, before a value of that type.",
};

/** What to write, added to a message of the parser. */
function advice(code: string, message: string): string {
  if (code === "UNEXPECTED_TOKEN" && message.endsWith("at node end"))
    return " Put a text with quotes, brackets, braces or commas in quotes.";
  if (message.startsWith("Sequence item")) return " Indent each key like the one before it.";
  return advices[code] ?? "";
}

const advices: Readonly<Record<string, string>> = {
  BAD_ALIAS: ' Put a text that begins with * in quotes: "*".',
  BAD_SCALAR_START: " Put the text in quotes.",
  BLOCK_AS_IMPLICIT_KEY: " Put a text with a colon in quotes, and indent each key like the one before it.",
  MULTILINE_IMPLICIT_KEY: " Write key: value.",
  TAB_AS_INDENT: " Indent with spaces.",
};

function refused(problems: readonly RulesProblem[]): YamlText {
  const atStart = (path: Path, message: string): RulesProblem => problem(message, path);
  return { value: undefined, problems, problemAt: atStart, problemAtKey: atStart };
}

function problem(message: string, path: Path = [], line = 1, column = 1): RulesProblem {
  return { message, line, column, path };
}
