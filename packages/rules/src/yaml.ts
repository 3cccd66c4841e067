import { LineCounter, parseDocument } from "yaml";
import { compose } from "./compose.js";
import type { Path, RulesProblem } from "./problems.js";

/** A text made plain data. */
export interface PlainText {
  /** Undefined where the text is no YAML: then the problems say why. */
  readonly value: unknown;
  readonly problems: readonly RulesProblem[];
  /** A problem with what a path leads to, or with the last part of it that is there. */
  problemAt(path: Path, message: string): RulesProblem;
  /** A problem with the last word of a path itself, not with its value. */
  problemAtWord(path: Path, message: string): RulesProblem;
}

/** Far more than thousands of rules take, and little enough to be read between two requests. */
export const mostBytes: number = 2 ** 20;

/** What the parser takes minutes or the whole memory for. */
const mazes = /(?:[[\]{},]\s*){60}/;

/** Reads YAML 1.2 and so JSON too, and knows where everything stands. It takes nothing from the text that is not plain data. */
export function readYaml(text: string): PlainText {
  const bytes = Buffer.byteLength(text);
  if (bytes > mostBytes) return refused([problem(`The text has ${bytes} bytes, more than the ${mostBytes} that rules may have.`)]);
  if (text.includes("\u{fffd}")) return refused([problem("The text is not UTF-8, or was not read as such.")]);
  const maze = mazes.exec(text);
  if (maze !== null) {
    const before = text.slice(0, maze.index).split("\n");
    const message = "More brackets and commas follow here, without a word between them, than rules ever have.";
    return refused([problem(message, [], before.length, (before.at(-1) as string).length + 1)]);
  }
  const lines = new LineCounter();
  // Words are compared by `compose`: here each would be compared with all before it.
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
    // What a mistake makes of the rest of its line, and of lines that it is blamed for twice, is no news.
    const first = new Map<number, RulesProblem>();
    for (const { code, message, pos } of syntax) {
      const one = problemOf(pos[0], own[code] ?? `${message}.`, []);
      if (!first.has(one.line)) first.set(one.line, one);
    }
    return refused([...first.values()]);
  }
  const { value, mistakes, offsetOf } = compose(document.contents);
  return {
    value,
    problems: mistakes.map(({ offset, message, path }) => problemOf(offset, message, path)),
    problemAt: (path, message) => problemOf(offsetOf(path, "value"), message, path),
    problemAtWord: (path, message) => problemOf(offsetOf(path, "word"), message, path),
  };
}

/** Where the parser's own words would not help. */
const own: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "A second document begins here, and rules are one. Remove the ---, or use two files.",
  NON_STRING_KEY: "A word is a text, not a list, a map or an alias.",
  RESOURCE_EXHAUSTION: "This is nested too deep to be rules.",
  TAG_RESOLVE_FAILED:
    "Rules are plain data: a tag is one of !!str, !!int, !!float, !!bool, !!null, !!map and !!seq, before a value that is written as one. Take it away.",
};

function refused(problems: readonly RulesProblem[]): PlainText {
  const nowhere = (path: Path, message: string): RulesProblem => problem(message, path);
  return { value: undefined, problems, problemAt: nowhere, problemAtWord: nowhere };
}

function problem(message: string, path: Path = [], line = 1, column = 1): RulesProblem {
  return { message, line, column, path };
}
