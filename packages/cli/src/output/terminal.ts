/** A terminal obeys control characters, also those of a text that somebody else has written. What is said of it stays one line. */
export function harmless(text: string): string {
  return text.replace(/[^\t\P{C}]/gu, "\u{fffd}");
}

/** The same of a text of several lines. */
export function harmlessLines(text: string): string {
  return text.split(/\r?\n/).map(harmless).join("\n");
}

/** JSON for programs, which is as harmless, and exact. */
export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2).replace(/[^\n\P{C}]/gu, escaped)}\n`;
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
}
