import type { RuleSet } from "@floodgate/core/rules";
import { describeProblem, parseRules, RulesError, type RulesProblem } from "@floodgate/rules";
import { Failure } from "../failure.js";
import { type Io, paint } from "../io.js";
import type { JsonOption, NamesOptions } from "../options.js";
import { count } from "../output/format.js";
import { json, sanitize } from "../output/terminal.js";
import { withFurtherProblems } from "./further-problems.js";

/**
 * Parses rules, and prints their problems.
 * @throws Failure if there are problems.
 */
export function validRules(io: Io, text: string, name: string, { keys, costs, json: asJson }: NamesOptions & JsonOption): RuleSet {
  const app = { ...(keys && { keys }), ...(costs && { costs }) };
  try {
    return parseRules(text, name, app);
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    const problems = withFurtherProblems(text, error.problems, app);
    io.out(asJson === true ? json({ file: name, rules: null, problems }) : problemsText(io, name, text, problems));
    throw problemsFailure(name, problems);
  }
}

export function problemsFailure(name: string, problems: readonly RulesProblem[]): Failure {
  return new Failure("refused", `${count(problems.length, "problem")} in ${name}.`);
}

/** Formats problems like a compiler: the position, the message, and the line with a caret. */
function problemsText(io: Io, name: string, text: string, problems: readonly RulesProblem[]): string {
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
