import { describeProblem, type RulesProblem } from "@floodgate/rules";
import { type Io, paint } from "../io.js";
import { sanitize } from "./terminal.js";

/** Formats problems like a compiler: the position, the message, and the line with a caret. */
export function problemsText(io: Io, name: string, text: string, problems: readonly RulesProblem[]): string {
  const lines = text.split(/\r\n|[\r\n]/);
  return problems
    .map((problem) => {
      const message = paint(io, "bold", sanitize(describeProblem(name, problem)));
      return `${message}\n${excerpt(io, lines[problem.line - 1] ?? "", problem)}`;
    })
    .join("\n");
}

/** Characters shown on each side of the position: a JSON file is often one long line. */
const contextLength = 60;

function excerpt(io: Io, line: string, { line: number, column }: RulesProblem): string {
  const from = Math.max(0, column - 1 - contextLength);
  const shown = sanitize(line.slice(from, column - 1 + contextLength));
  // Tabs stay, so that the caret is under the position.
  const before = shown.slice(0, column - 1 - from).replace(/[^\t]/g, " ");
  const gutter = `${number}`;
  return `  ${gutter} | ${shown}\n  ${" ".repeat(gutter.length)} | ${before}${paint(io, "red", "^")}\n`;
}
