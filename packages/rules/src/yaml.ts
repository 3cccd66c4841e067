import { LineCounter, parseDocument } from "yaml";
import type { Path, RulesProblem } from "./rules-error.js";
import { toValue } from "./yaml-values.js";

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

/** Input for which the parser takes minutes or all memory. */
const bracketRun = /(?:[[\]{},]\s*){60}/;

/** Reads YAML 1.2, which includes JSON, and the position of each value. Only plain data is accepted: tags construct no objects. */
export function readYaml(text: string): YamlText {
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) return refused([problem(`The text has ${bytes} bytes, above the maximum of ${maxBytes}.`)]);
  if (text.includes("\u{fffd}")) return refused([problem("The text is not valid UTF-8.")]);
  const brackets = bracketRun.exec(text);
  if (brackets !== null) {
    const before = text.slice(0, brackets.index).split("\n");
    const message = "Too many brackets and commas in a row start here.";
    return refused([problem(message, [], before.length, (before.at(-1) as string).length + 1)]);
  }
  const lines = new LineCounter();
  // `toValue` finds duplicate keys. The parser would compare each key with all keys before it.
  const document = parseDocument(text, {
    schema: "core",
    resolveKnownTags: false,
    stringKeys: true,
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter: lines,
  });
  const problemOf = (offset: number, message: string, path: Path): RulesProblem => {
    const { line, col } = lines.linePos(offset);
    return problem(message, path, Math.max(line, 1), Math.max(col, 1));
  };

  const syntax = [...document.errors, ...document.warnings];
  if (syntax.length > 0) {
    // Only the first error of a line is shown: the others usually follow from it.
    const first = new Map<number, RulesProblem>();
    for (const { code, message, pos } of syntax) {
      const found = problemOf(pos[0], ownMessages[code] ?? `${message}.`, []);
      if (!first.has(found.line)) first.set(found.line, found);
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

/** Replaces messages of the parser that would not help. */
const ownMessages: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "A second YAML document starts here. Remove the ---, or use two files.",
  NON_STRING_KEY: "A key must be a string, not a list, a map or an alias.",
  RESOURCE_EXHAUSTION: "This is nested too deeply.",
  TAG_RESOLVE_FAILED:
    "Only the tags !!str, !!int, !!float, !!bool, !!null, !!map and !!seq are allowed, and only before a value of that type. Remove this tag.",
};

function refused(problems: readonly RulesProblem[]): YamlText {
  const atStart = (path: Path, message: string): RulesProblem => problem(message, path);
  return { value: undefined, problems, problemAt: atStart, problemAtKey: atStart };
}

function problem(message: string, path: Path = [], line = 1, column = 1): RulesProblem {
  return { message, line, column, path };
}
