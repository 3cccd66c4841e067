import { FloodgateError } from "@floodgate/core";
import type { ReadRules } from "./parse.js";
import { RulesError, type RulesProblem } from "./problems.js";
import { messageOf } from "./reason.js";

/** What users of the rules have found wrong with a version: each mistake where it stands. */
export function refusalOf(file: string, { problemAt }: ReadRules, errors: readonly unknown[]): RulesError {
  const problems = new Map<string, RulesProblem>();
  for (const mistake of errors.flatMap(mistakesIn)) {
    const message = messageOf(mistake);
    const problem = problemAt(mistake instanceof FloodgateError ? mistake.at : [], message);
    // Several users may find the same, each saying its own name before it.
    const same = JSON.stringify([problem.path, message.replace(/^\w+: /, "")]);
    if (!problems.has(same)) problems.set(same, problem);
  }
  return new RulesError(file, [...problems.values()], { cause: errors[0] });
}

/** All mistakes that a user has found, which may be the cause of what it throws; or what it throws. */
function mistakesIn(error: unknown): readonly unknown[] {
  const { cause } = error instanceof Error ? error : {};
  const all: unknown[] = cause instanceof AggregateError ? cause.errors : [];
  return all.length > 0 && all.every((one) => one instanceof FloodgateError) ? all : [error];
}
