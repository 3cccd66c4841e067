import type { KeyName } from "../../contract.js";

/** What a person typed: a key as it is, or a list of its parts as JSON. */
export function keyOf(typed: string): KeyName {
  const text = typed.trim();
  if (!text.startsWith("[")) return { key: text };
  try {
    const parts: unknown = JSON.parse(text);
    if (Array.isArray(parts) && parts.length > 0 && parts.every((part) => typeof part === "string" || typeof part === "number")) {
      return { key: parts.map(String) };
    }
  } catch {
    // Not a list, so a key that begins with a bracket.
  }
  return { key: text };
}
