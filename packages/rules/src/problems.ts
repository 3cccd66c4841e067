import { FloodgateError } from "@floodgate/core";

/** Where in the rules something stands: `["rules", 2, "policy", "window"]`. */
export type Path = readonly (string | number)[];

/** A place in a text. */
export interface Place {
  /** From 1, as editors count. */
  readonly line: number;
  /** From 1. */
  readonly column: number;
}

/** A mistake in the text of the rules. */
export interface RulesProblem extends Place {
  readonly message: string;
  /** Empty where the text as a whole is meant, or is no YAML. */
  readonly path: Path;
}

/** A text of rules that is refused: its message shows the problems, each on a line that begins as a compiler's would. */
export class RulesError extends FloodgateError {
  /** In the order of their lines. */
  readonly problems: readonly RulesProblem[];

  constructor(file: string, problems: readonly RulesProblem[], options?: { cause?: unknown; more?: number }) {
    const inOrder = [...problems].sort(byPlace);
    const shown = inOrder.slice(0, mostShown).map((problem) => describeProblem(file, problem));
    const untold = inOrder.length - shown.length + (options?.more ?? 0);
    if (untold > 0) shown.push(`... and ${untold} more.`);
    super("FLOODGATE_INVALID_RULES", shown.join("\n"), {
      ...(options?.cause === undefined ? {} : { cause: options.cause }),
      at: inOrder[0]?.path ?? [],
    });
    this.name = "RulesError";
    this.problems = inOrder;
  }
}

/** How many problems a message shows, for it goes into logs. */
export const mostShown = 100;

/** Sorts what has a place by it. */
export function byPlace(a: Place, b: Place): number {
  return a.line - b.line || a.column - b.column;
}

/** `limits.yaml:14:13: ...`: what editors and terminals make a link of. */
export function describeProblem(file: string, { line, column, message }: RulesProblem): string {
  return `${file}:${line}:${column}: ${message}`;
}
