import { FloodgateError, shown } from "./errors.js";
import { sha256 } from "./hash.js";

export type KeyPart = string | number | bigint | boolean;

/** Whom a limit counts: a client IP, a user id, a route, or a tuple of those, of which a part may be a tuple itself. */
export type Key = KeyPart | readonly (KeyPart | readonly KeyPart[])[];

/** Longer texts are hashed: a client that makes up its keys must not choose how much memory one takes. */
const longestText = 200;

/**
 * A key as one text, different for different keys: `42`, `42n` and `"42"` are the same (a client that chooses its JSON
 * types must not gain a count), while `["a", "b"]`, `["a,b"]`, `[["a", "b"]]` and `"a,b"` are four. Plain strings stay as they are, up to
 * 200 characters; what is longer is known by its SHA-256.
 * @throws FloodgateError `FLOODGATE_INVALID_KEY` for anything that is no key.
 */
export function encodeKey(key: Key): string {
  const text = textOf(key, 0);
  return text.length <= longestText ? text : `\\#${sha256(text)}`;
}

/** @param depth how many tuples it is a part of. */
function textOf(key: unknown, depth: number): string {
  if (typeof key === "string") return escaped(key);
  return Array.isArray(key) ? tupleText(key, depth) : partText(key);
}

/** A tuple starts with "(" and an escape or a hash with "\\", so a string that does gets an escape. */
function escaped(key: string): string {
  const first = key.charCodeAt(0);
  return first === 0x28 || first === 0x5c ? `\\${key}` : key;
}

function tupleText(key: readonly unknown[], depth: number): string {
  if (key.length === 0 || depth > 1) throw invalidKey(key);
  let text = "(";
  for (let i = 0; i < key.length; i++) {
    if (i > 0) text += ",";
    text += textOf(key[i], depth + 1).replace(/[\\,]/g, "\\$&");
  }
  return `${text})`;
}

function partText(part: unknown): string {
  switch (typeof part) {
    case "bigint":
    case "boolean":
      return String(part);
    case "number":
      if (Number.isFinite(part)) return String(part);
  }
  throw invalidKey(part);
}

function invalidKey(key: unknown): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_INVALID_KEY",
    `A key must be a string, a finite number, a bigint, a boolean, or a tuple of those, but was ${shown(key)}. Write String(value) if its text is what tells callers apart; answer undefined where there is no key.`,
  );
}
