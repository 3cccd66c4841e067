import { checkOptions, toPolicy } from "@floodgate/core/rules";
import type * as z from "zod/mini";
import { gatewayAdvice } from "./gateway-words.js";
import type { Path } from "./rules-error.js";
import { expectations, rulesFile } from "./schema.js";

/** A value of the wrong type, an unknown key or a missing one. */
export interface SchemaError {
  /** Makes the message. Only the first of thousands of errors are explained. */
  readonly explain: () => string;
  readonly path: Path;
  /** Whether the key at the path is wrong, rather than its value. */
  readonly isKey: boolean;
}

/** Compares a file's data with the schema. */
export function schemaErrors(value: unknown): SchemaError[] {
  const { error } = rulesFile.safeParse(value, { reportInput: true, error: messageOfIssue });
  return (error?.issues ?? []).flatMap((issue) => fromIssue(issue, []));
}

function fromIssue(issue: z.core.$ZodIssue, parent: Path): SchemaError[] {
  const path = [...parent, ...(issue.path as Path)];
  if (issue.code === "unrecognized_keys") {
    // `messageOfIssue` put the known keys there.
    const known = issue.message.split(" ");
    return issue.keys.map((key) => ({
      explain: () =>
        key === "policy" && known.includes("algorithm")
          ? `${pathText(path)} is a policy itself. Write its \`algorithm\` and numbers here, without \`policy\`.`
          : unknownKey(pathText(path), key, issue.input, known),
      path: [...path, key],
      isKey: true,
    }));
  }
  if (issue.code === "invalid_union") {
    if (issue.discriminator !== undefined) {
      return [{ explain: () => messageThrownBy(() => toPolicy(pathText(path.slice(0, -1)), issue.input)), path, isKey: false }];
    }
    // For a value or a list of them: if a list was given, the errors of its items.
    const inside = issue.errors.find((issues) => issues.every((nested) => nested.path.length > 0));
    if (inside !== undefined) return inside.flatMap((nested) => fromIssue(nested, path));
  }
  return [{ explain: () => `${subjectOf(path)} ${issue.message}`, path, isKey: false }];
}

/** The part of a message that needs the schema. The subject is added once the whole path is known. */
function messageOfIssue(issue: z.core.$ZodRawIssue): string {
  if (issue.code === "unrecognized_keys") return Object.keys((issue.inst as z.ZodMiniObject).shape).join(" ");
  const schema = issue.schema ?? issue.inst;
  const { what, example } = (schema && expectations.get(schema as z.ZodMiniType)) ?? { what: "a string", example: "a string" };
  if (issue.code === "too_small") return `is an empty list. Write ${example}.`;
  const { input } = issue;
  if (input === undefined) return `is missing. Write ${example}.`;
  return `must be ${what}, but ${inputText(input)}. ${advice(input, what, example)}`;
}

function advice(input: unknown, what: string, example: string): string {
  if (typeof input === "string" && /^\d+$/.test(input) && what.startsWith("a whole number")) return `Remove the quotes: ${input}.`;
  if ((typeof input === "number" || typeof input === "boolean") && what.startsWith("a string")) return `Put it in quotes: "${input}".`;
  return `Write ${example}.`;
}

/** Describes a value with the words of YAML. */
function inputText(value: unknown): string {
  if (value === null) return "is empty";
  if (typeof value === "string") return `was the string ${JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value)}`;
  if (Array.isArray(value)) return "was a list";
  if (typeof value === "object") return "was a map";
  return `was ${value}`;
}

/** A word of a gateway, of another library, or of none. */
function unknownKey(where: string, key: string, map: unknown, known: readonly string[]): string {
  const advice = gatewayAdvice(key, map, known);
  if (advice !== undefined) return `${where} has no option \`${key}\`. ${advice}`;
  return messageThrownBy(() => checkOptions(where, { [key]: valueAt(map, key) }, known, ""));
}

function valueAt(map: unknown, key: string): unknown {
  return typeof map === "object" && map !== null && Object.hasOwn(map, key) ? (map as Record<string, unknown>)[key] : undefined;
}

/** How core writes a policy: `policy: tokenBucket({ capacity: 20 })`. */
const policyCall = /policy: (\w+)\(\{ ([^}]*) \}\)(?:, or the function of another algorithm)?/;

/** Core's own message, so that a mistake reads the same in a file and in code. Only a policy is written as in a file. */
function messageThrownBy(check: () => unknown): string {
  try {
    check();
  } catch (error) {
    return (error as Error).message.replace(policyCall, (_, name: string, numbers: string) => {
      const algorithm = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return `policy: { algorithm: ${algorithm}, ${numbers} }`;
    });
  }
  return "is invalid.";
}

/** The subject of a message: ``rules[0]: `match.path` ``. */
function subjectOf(path: Path): string {
  const [list, index, ...rest] = path;
  if (list === undefined) return "The file";
  if (list !== "rules" || index === undefined) return `\`${pathText(path)}\``;
  return rest.length === 0 ? pathText(path) : `rules[${index}]: \`${pathText(rest)}\``;
}

/** `rules[0].match.path[1]`. */
function pathText(path: Path): string {
  if (path.length === 0) return "The file";
  return path.map((part, i) => (typeof part === "number" ? `[${part}]` : i === 0 ? part : `.${part}`)).join("");
}
