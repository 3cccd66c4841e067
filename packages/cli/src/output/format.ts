import { table as columns } from "@floodgate/simulator";
import { type Io, painter } from "../io.js";
import { sanitize } from "./terminal.js";

export { didYouMean, policyText, waitText } from "@floodgate/core/rules";

/** `1 rule`, `2,000 rules`. */
export function count(number: number, thing: string): string {
  return `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;
}

/** The text for rules without problems. */
export function validRulesText(name: string, rules: readonly unknown[]): string {
  return `${sanitize(name)}: ${count(rules.length, "rule")}, no problems\n`;
}

/** The text for the version of the rules in Redis. */
export function versionText(rulesKey: string, version: string): string {
  return `${sanitize(rulesKey)}: version ${sanitize(version)}\n`;
}

/** Known words, for an error. */
export function listOf(known: readonly string[]): string {
  return known.length === 0 ? "none" : [...new Set(known)].join(", ");
}

/** Formats a time in this machine's time zone: `2026-11-21 14:03:05 GMT+1`. */
export function localTime(ms: number): string {
  // The Swedish locale formats dates like ISO 8601.
  return new Date(ms).toLocaleString("sv", { dateStyle: "short", timeStyle: "long" });
}

/** Formats rows under headings, in aligned columns. */
export function table(io: Io, headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const named = headings.map((heading) => ({ heading }));
  return columns(painter(io), named, rows);
}
