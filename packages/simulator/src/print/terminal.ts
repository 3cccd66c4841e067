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
