import { FloodgateError } from "@floodgate/core";

/** The path to a part of the rules: `["rules", 2, "policy", "window"]`. */
export type Path = readonly (string | number)[];

/** A position in a text. */
export interface Position {
  /** From 1, as editors count. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

/** A mistake in the text of the rules. */
export interface RulesProblem extends Position {
  readonly message: string;
  /** Empty if the problem is with the whole text, or with its YAML syntax. */
  readonly path: Path;
}

/** Rules with mistakes. The message has a line for each problem, in the form `file:line:column: message`. */
export class RulesError extends FloodgateError {
  override name = "RulesError";
  /** Sorted by position. */
  readonly problems: readonly RulesProblem[];

  /** @param options.more how many further problems were found but not explained. */
  constructor(file: string, problems: readonly RulesProblem[], options?: { cause?: unknown; more?: number }) {
    const sorted = [...problems].sort(byPosition);
    const lines = sorted.slice(0, maxShown).map((problem) => describeProblem(file, problem));
    const omitted = sorted.length - lines.length + (options?.more ?? 0);
    if (omitted > 0) lines.push(`... and ${omitted} more.`);
    super("FLOODGATE_INVALID_RULES", lines.join("\n"), {
      ...(options?.cause === undefined ? {} : { cause: options.cause }),
      at: sorted[0]?.path ?? [],
    });
    this.problems = sorted;
  }
}

/** Maximum number of problems in a message, because messages go into logs. */
export const maxShown = 100;

/** Compares positions, for sorting. */
export function byPosition(a: Position, b: Position): number {
  return a.line - b.line || a.column - b.column;
}

/** Formats a problem as `limits.yaml:14:13: ...`, which editors and terminals turn into a link. */
export function describeProblem(file: string, { line, column, message }: RulesProblem): string {
  return `${file}:${line}:${column}: ${message}`;
}

/** A mistake that a middleware found in rules whose text is valid. */
interface Mistake {
  readonly path: Path;
  readonly message: string;
}

/** The mistakes in errors that middlewares threw. A mistake that several of them found is listed once. */
export function mistakesIn(errors: readonly unknown[]): Mistake[] {
  const mistakes = new Map<string, Mistake>();
  for (const mistake of errors.flatMap(mistakesOf)) {
    const message = inFileWords(messageOf(mistake));
    const path = mistake instanceof FloodgateError ? mistake.at : [];
    // Each middleware puts its own name before the message.
    const id = JSON.stringify([path, message.replace(/^\w+: /, "")]);
    if (!mistakes.has(id)) mistakes.set(id, { path, message });
  }
  return [...mistakes.values()];
}

/** A message of core about a rule in a file, which can hold no function. Its position stands before it. */
export function inFileWords(message: string): string {
  return message.replace(/^rules: |a function (of the request, |or )|\(status\) .* or refundWhen: /g, "");
}

/** The error that reports mistakes. `positions` has the position of each, in the same order. */
export function mistakesError(file: string, mistakes: readonly Mistake[], positions: readonly Position[], cause: unknown): RulesError {
  const problems = mistakes.map(({ path, message }, i) => {
    const { line, column } = positions[i] as Position;
    return { message, line, column, path };
  });
  return new RulesError(file, problems, { cause });
}

/** All mistakes of one error: those in its cause if that is a list of mistakes, else the error itself. */
function mistakesOf(error: unknown): readonly unknown[] {
  const { cause } = error instanceof Error ? error : {};
  const all: unknown[] = cause instanceof AggregateError ? cause.errors : [];
  return all.length > 0 && all.every((mistake) => mistake instanceof FloodgateError) ? all : [error];
}

/** An error's message. If it has none, its code or the name of its class. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || (error as NodeJS.ErrnoException).code || error.constructor.name;
}

/** The same without a full stop, for the end of a sentence. */
export function reasonOf(error: unknown): string {
  return messageOf(error).replace(/\.$/, "");
}
