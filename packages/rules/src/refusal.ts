import { FloodgateError } from "@floodgate/core";
import { type Path, type Place, RulesError } from "./problems.js";
import { messageOf } from "./reason.js";

/** What a user of the rules has found wrong with a version. */
interface Objection {
  readonly path: Path;
  readonly message: string;
}

/** What users of the rules have found wrong with a version, each thing once. */
export function objectionsIn(errors: readonly unknown[]): Objection[] {
  const objections = new Map<string, Objection>();
  for (const mistake of errors.flatMap(mistakesIn)) {
    const message = messageOf(mistake);
    const path = mistake instanceof FloodgateError ? mistake.at : [];
    // Several users may find the same, each saying its own name before it.
    const same = JSON.stringify([path, message.replace(/^\w+: /, "")]);
    if (!objections.has(same)) objections.set(same, { path, message });
  }
  return [...objections.values()];
}

/** The refusal of rules for objections, each at its place. */
export function refusalOf(file: string, objections: readonly Objection[], places: readonly Place[], cause: unknown): RulesError {
  const problems = objections.map(({ path, message }, i) => {
    const { line, column } = places[i] as Place;
    return { message, line, column, path };
  });
  return new RulesError(file, problems, { cause });
}

/** All mistakes that a user has found, which may be the cause of what it throws; or what it throws. */
function mistakesIn(error: unknown): readonly unknown[] {
  const { cause } = error instanceof Error ? error : {};
  const all: unknown[] = cause instanceof AggregateError ? cause.errors : [];
  return all.length > 0 && all.every((one) => one instanceof FloodgateError) ? all : [error];
}
