import { FloodgateError } from "@floodgate/core";
import { stringify } from "yaml";

/** Settings with mistakes. The message has a line for each of the first hundred. */
export class SettingsError extends FloodgateError {
  override name = "SettingsError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const lines = problems.slice(0, maxShown);
    if (problems.length > lines.length) lines.push(`... and ${problems.length - lines.length} more.`);
    super("FLOODGATE_INVALID_OPTION", lines.join("\n"));
    this.problems = problems;
  }
}

const maxShown = 100;

/** A wrong value, for a message. */
export function shownValue(value: unknown): string {
  if (value === null) return "empty";
  if (typeof value === "string") return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}...` : value);
  if (Array.isArray(value)) return value.length > 10 ? `a list of ${value.length}` : `the list ${yamlOf(value).slice(0, 60)}`;
  if (typeof value === "object") return "a map";
  return typeof value === "function" ? "a function" : `${String(value)}`;
}

/** A value as YAML in one line. */
export function yamlOf(value: unknown): string {
  return stringify(value, { collectionStyle: "flow", lineWidth: 0 }).trim();
}
