import { readFile, stat } from "node:fs/promises";
import type { RuleSet } from "@floodgate/core/rules";
import { parseRules, pullRules, RulesError, type RulesProblem, type RulesRedis } from "@floodgate/rules";
import { Failure } from "./failure.js";
import type { Io } from "./io.js";
import type { NamesOptions } from "./options.js";
import { problemsText } from "./output/problems.js";
import { count } from "./output/words.js";

/** The text of a file, or of standard input for `-`, and what to call it. */
export async function readText(io: Io, file: string): Promise<{ text: string; name: string }> {
  if (file === "-") return { text: await io.readInput(), name: "stdin" };
  try {
    const found = await stat(file);
    // Reading a pipe that nobody writes to would not end.
    if (!found.isFile()) throw new Error(found.isDirectory() ? "it is a directory" : "it is no regular file. Write - for standard input");
    return { text: await readFile(file, "utf8"), name: file };
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    throw new Failure("usage", code === "ENOENT" ? `there is no file ${file}.` : `${file} cannot be read: ${message}.`, { cause });
  }
}

/**
 * The text of the rules in Redis, and their version.
 * @throws Failure where there are none.
 */
export async function pullText(redis: RulesRedis, key: string): Promise<{ text: string; version: string }> {
  const found = await pullRules(redis, key);
  if (found !== undefined) return found;
  throw new Failure(
    "refused",
    `there are no rules under ${key}. Put some there (floodgate push limits.yaml), or say where they are: --rules-key.`,
  );
}

/**
 * The rules of a text.
 * @throws Failure where it has problems, once they are printed.
 */
export function soundRules(io: Io, text: string, name: string, names: NamesOptions = {}): RuleSet {
  const { rules, problems } = judge(text, name, names);
  if (rules !== undefined) return rules;
  io.out(problemsText(io, name, text, problems));
  throw problemsIn(name, problems);
}

export function problemsIn(name: string, problems: readonly RulesProblem[]): Failure {
  return new Failure("refused", `${count(problems.length, "problem")} in ${name}.`);
}

/** What a text of rules turned out to be. */
export interface Judged {
  /** Undefined where there are problems. */
  readonly rules: RuleSet | undefined;
  readonly problems: readonly RulesProblem[];
}

export function judge(text: string, name: string, { keys, costs }: NamesOptions = {}): Judged {
  try {
    return { rules: parseRules(text, name, { ...(keys && { keys }), ...(costs && { costs }) }), problems: [] };
  } catch (error) {
    if (!(error instanceof RulesError)) throw error;
    return { rules: undefined, problems: error.problems };
  }
}
