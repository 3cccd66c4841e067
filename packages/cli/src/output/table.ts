import { type Io, paint } from "../io.js";
import { sanitize } from "./terminal.js";

/** Formats rows under headings, in aligned columns. */
export function table(io: Io, headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, i) => Math.max(heading.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => sanitize(cell).padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd();
  return [paint(io, "dim", line(headings)), ...rows.map(line)].map((text) => `  ${text}\n`).join("");
}
