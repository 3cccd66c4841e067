import { type Paint, sanitize } from "./terminal.js";

/** A column: its heading, and whether it is of numbers, which are aligned at the right. */
export interface Column {
  readonly heading: string;
  readonly isNumber?: boolean;
}

/** Formats rows in aligned columns. */
export function table(paint: Paint, columns: readonly Column[], rows: readonly (readonly string[])[], indent = "  "): string {
  // Not Math.max(...), which cannot take a hundred thousand rows.
  const widths = columns.map(({ heading }, i) => rows.reduce((width, row) => Math.max(width, row[i]?.length ?? 0), heading.length));
  const line = (cells: readonly string[]): string =>
    columns
      .map(({ isNumber }, i) => {
        const cell = sanitize(cells[i] ?? "");
        return isNumber === true ? cell.padStart(widths[i] as number) : cell.padEnd(widths[i] as number);
      })
      .join("  ")
      .trimEnd();
  return [paint("dim", line(columns.map(({ heading }) => heading))), ...rows.map(line)].map((text) => `${indent}${text}\n`).join("");
}
