import { type Io, paint } from "../io.js";
import { harmless } from "./terminal.js";

/** Rows of one heading each, as wide as they must be. */
export function table(io: Io, headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, i) => Math.max(heading.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => harmless(cell).padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd();
  return [paint(io, "dim", line(headings)), ...rows.map(line)].map((text) => `  ${text}\n`).join("");
}
