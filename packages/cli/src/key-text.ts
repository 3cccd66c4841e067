import type { Key } from "@floodgate/core";
import { Failure } from "./failure.js";

/**
 * The key that `encodeKey` writes so: `(a,b)` is a tuple, `\(a,b)` a text that begins with a parenthesis. What it writes of no key is
 * the text that it is.
 * @throws Failure where it is the hash of a key, which does not tell the key.
 */
export function keyOf(text: string): Key {
  if (/^\\#[\da-f]{64}$/.test(text)) {
    throw new Failure("usage", `${JSON.stringify(text)} is the hash of a key that is longer than 200 characters. Write the key itself.`);
  }
  const [, parts] = /^\((.*)\)$/s.exec(text) ?? [];
  if (parts !== undefined) return partsOf(parts).map(keyOf) as Key;
  return /^\\(?:[(\\]|secret:|missing-key-ip:)/.test(text) ? text.slice(1) : text;
}

/** Between commas that are not escaped. */
function partsOf(text: string): string[] {
  const parts = [""];
  for (const [token] of text.matchAll(/\\?./gs)) {
    if (token === ",") parts.push("");
    else parts[parts.length - 1] += token.length > 1 ? token.slice(1) : token;
  }
  return parts;
}
