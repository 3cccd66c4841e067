import { sanitize } from "@floodgate/simulator";

export { sanitize };

/** Sanitizes a text of several lines. */
export function sanitizeLines(text: string): string {
  return text.split(/\r?\n/).map(sanitize).join("\n");
}

/** Formats JSON with control characters escaped. */
export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2).replace(/[^\n\P{C}]/gu, escaped)}\n`;
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
}

/** A word as one would type it in a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
