import { checkOptions, toPolicy } from "@floodgate/core/rules";
import type { z } from "zod";
import type { Path } from "./problems.js";
import { expectations, rulesFile } from "./schema.js";

/** A mistake of shape or type. */
export interface Mistake {
  /** Makes the message. Of thousands of mistakes only the first are explained. */
  readonly explain: () => string;
  readonly path: Path;
  /** Whether the last word of the path is the mistake, rather than its value. */
  readonly word: boolean;
}

/** All mistakes of shape and type in what a file holds. */
export function mistakesOf(value: unknown): Mistake[] {
  const { error } = rulesFile.safeParse(value, { reportInput: true, error: whatIsWrong });
  return (error?.issues ?? []).flatMap((issue) => fromIssue(issue, []));
}

function fromIssue(issue: z.core.$ZodIssue, before: Path): Mistake[] {
  const path = [...before, ...(issue.path as Path)];
  if (issue.code === "unrecognized_keys") {
    // Their words are told apart by what is known where they stand.
    const known = issue.message.split(" ");
    return issue.keys.map((word) => ({
      explain: () => refusal(() => checkOptions(nameOf(path), { [word]: valueAt(issue.input, word) }, known, "")),
      path: [...path, word],
      word: true,
    }));
  }
  if (issue.code === "invalid_union") {
    if (issue.discriminator !== undefined) {
      return [{ explain: () => refusal(() => toPolicy(nameOf(path.slice(0, -1)), issue.input)), path, word: false }];
    }
    // Of a value or a list of them, what is wrong in the list.
    const inside = issue.errors.find((issues) => issues.every((one) => one.path.length > 0));
    if (inside !== undefined) return inside.flatMap((one) => fromIssue(one, path));
  }
  return [{ explain: () => `${subjectOf(path)} ${issue.message}`, path, word: false }];
}

/** The words that a sentence of a problem needs from the schema; the rest is known once the whole path is. */
function whatIsWrong(issue: z.core.$ZodRawIssue): string {
  if (issue.code === "unrecognized_keys") return Object.keys((issue.inst as z.ZodObject).shape).join(" ");
  const schema = issue.schema ?? issue.inst;
  const { what, example } = (schema && expectations.get(schema as z.ZodType)) ?? { what: "a text", example: "a text" };
  if (issue.code === "too_small") return `is an empty list, which says nothing. Write ${example}.`;
  const { input } = issue;
  if (input === undefined) return `is missing. Write ${example}.`;
  return `must be ${what}, but ${given(input)}. ${advice(input, what, example)}`;
}

function advice(input: unknown, what: string, example: string): string {
  if (typeof input === "string" && /^\d+$/.test(input) && what.startsWith("a whole number")) return `Take the quotes off: ${input}.`;
  if ((typeof input === "number" || typeof input === "boolean") && what.startsWith("a text")) return `Put it in quotes: "${input}".`;
  return `Write ${example}.`;
}

/** A value in the words of YAML. */
function given(value: unknown): string {
  if (value === null) return "there was nothing";
  if (typeof value === "string") return `was the text ${JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)}`;
  if (Array.isArray(value)) return "was a list";
  if (typeof value === "object") return "was a map";
  return `was ${value}`;
}

function valueAt(map: unknown, word: string): unknown {
  return typeof map === "object" && map !== null && Object.hasOwn(map, word) ? (map as Record<string, unknown>)[word] : undefined;
}

/** Core's own words, so that the same mistake reads the same in a file and in code. */
function refusal(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    return (error as Error).message;
  }
  return "is refused.";
}

/** Begins a sentence: ``rules[0]: `match.path` ``. */
function subjectOf(path: Path): string {
  const [list, index, ...rest] = path;
  if (list === undefined) return "The file";
  if (list !== "rules" || index === undefined) return `\`${nameOf(path)}\``;
  return rest.length === 0 ? nameOf(path) : `rules[${index}]: \`${nameOf(rest)}\``;
}

/** `rules[0].match.path[1]`. */
function nameOf(path: Path): string {
  if (path.length === 0) return "The file";
  return path.map((part, i) => (typeof part === "number" ? `[${part}]` : i === 0 ? part : `.${part}`)).join("");
}
