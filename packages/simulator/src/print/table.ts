/** A column: its heading, and whether it is of numbers, which are aligned at the right. */
export interface Column {
  readonly heading: string;
  readonly isNumber?: boolean;
}

/** A heading, and what its cells say of each item: a text, or a number. */
export type Described<Item> = readonly [heading: string, cell: (item: Item) => string, isText?: "text"];

/** Formats items in columns of numbers, which are aligned at the right, and of texts. */
export function tableOf<Item>(paint: Paint, columns: readonly Described<Item>[], items: readonly Item[], indent?: string): string {
  const headings = columns.map(([heading, , isText]) => ({ heading, isNumber: isText === undefined }));
  const rows = items.map((item) => columns.map(([, cell]) => cell(item)));
  return table(paint, headings, rows, indent);
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

/** Formats a text for a terminal, or not. */
export type Paint = (format: "bold" | "red" | "green" | "dim", text: string) => string;

/** Replaces control characters and line breaks, so that a text from a log can control no terminal and begin no line. */
export function sanitize(text: string): string {
  return text.replace(/[^\t\P{C}]|[\p{Zl}\p{Zp}]/gu, "\u{fffd}");
}

/** A text from a log, for a cell of a table: sanitized, and of bounded length. */
export function shownKey(key: string): string {
  const text = sanitize(key);
  return text.length > longestKey ? `${text.slice(0, longestKey - 1)}…` : text;
}

const longestKey = 48;
