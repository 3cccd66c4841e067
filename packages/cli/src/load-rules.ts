import { lstat, readFile, rm, stat, writeFile } from "node:fs/promises";
import type { RuleSet } from "@floodgate/core/rules";
import { describeProblem, parseRules, RulesError, type RulesProblem } from "@floodgate/rules";
import { Failure, unreadable, unwritable } from "./failure.js";
import { withFurtherProblems } from "./further-problems.js";
import { type Io, paint } from "./io.js";
import type { JsonOption, NamesOptions } from "./options.js";
import { count } from "./output/format.js";
import { json, sanitize } from "./output/terminal.js";

/** Reads a file, or standard input for `-`. `name` is its name in messages. */
export async function readText(io: Io, file: string): Promise<{ text: string; name: string }> {
  if (file === "-") return { text: await io.readInput(), name: "stdin" };
  try {
    const found = await stat(file);
    // Reading a pipe without a writer would never end.
    if (!found.isFile())
      throw new Error(found.isDirectory() ? "it is a directory" : "it is not a regular file. Write - for standard input");
    return { text: await readFile(file, "utf8"), name: file };
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

/**
 * Writes a file. `wx` does not overwrite one. If the disk is full, for example, what stood there is put back.
 * @throws Failure if it cannot be written.
 */
export async function writeText(file: string, text: string, flag: "w" | "wx" = "w"): Promise<void> {
  const isNew = await lstat(file).then(
    () => false,
    ({ code }) => code === "ENOENT",
  );
  const before = await contentOf(file);
  try {
    await writeFile(file, text, { flag });
  } catch (cause) {
    if (isNew) await rm(file, { force: true }).catch(() => undefined);
    else if (before !== undefined && flag === "w") await writeFile(file, before).catch(() => undefined);
    throw unwritable(file, cause);
  }
}

/** Undefined for what is no file, such as a terminal, and for a file that cannot be read. */
async function contentOf(file: string): Promise<Buffer | undefined> {
  try {
    return (await stat(file)).isFile() ? await readFile(file) : undefined;
  } catch {
    return undefined;
  }
}

export function noRules(key: string): Failure {
  return new Failure(
    "refused",
    `there are no rules under ${key}. Push some (floodgate push limits.yaml), or name another key with --rules-key.`,
  );
}

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
