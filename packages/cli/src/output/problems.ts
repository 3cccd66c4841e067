import { describeProblem, type RulesProblem } from "@floodgate/rules";
import { type Io, paint } from "../io.js";
import { harmless } from "./terminal.js";

/** Problems as a compiler shows them: the place, what is wrong, and the line with a caret under the place. */
export function problemsText(io: Io, name: string, text: string, problems: readonly RulesProblem[]): string {
  const lines = text.split(/\r\n|[\r\n]/);
  return problems
    .map((problem) => {
      const place = paint(io, "bold", harmless(describeProblem(name, problem)));
      return `${place}\n${excerpt(io, lines[problem.line - 1] ?? "", problem)}`;
    })
    .join("\n");
}

/** What is seen of a long line (JSON is often one) on both sides of the place. */
const reach = 60;

function excerpt(io: Io, line: string, { line: number, column }: RulesProblem): string {
  const from = Math.max(0, column - 1 - reach);
  const seen = harmless(line.slice(from, column - 1 + reach));
  // A tab is as wide in one line as in the next.
  const before = seen.slice(0, column - 1 - from).replace(/[^\t]/g, " ");
  const gutter = `${number}`;
  return `  ${gutter} | ${seen}\n  ${" ".repeat(gutter.length)} | ${before}${paint(io, "red", "^")}\n`;
}
