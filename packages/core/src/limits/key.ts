import { FloodgateError, shown } from "../support/errors.js";
import { sha256 } from "../support/hash.js";
import { ipKey, parseIp } from "../support/ip.js";

export type KeyPart = string | number | bigint | boolean;

/** What a limit counts by: a client IP, a user id, a route, or a tuple of those. A part of a tuple may be a tuple itself. */
export type Key = KeyPart | readonly (KeyPart | readonly KeyPart[])[];

/** A client without a key, which a rule with `onMissingKey: "ip"` counts by this address. */
export interface MissingKeyIp {
  /** In any notation. IPv6 is cut to the prefix, as in the middleware. */
  readonly missingKeyIp: string;
}

/** A key of a limiter, or a client without a key. */
export type LimiterKey = Key | MissingKeyIp;

/** The digest of a secret key or part. Only core makes instances, so no key from an app equals one. */
export class KeyDigest {
  /** `secret:` and 64 hexadecimal digits. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type CountedKey = Key | KeyDigest | readonly (KeyPart | KeyDigest | readonly KeyPart[])[];

/** Longer texts are hashed, so that a client cannot choose how much memory a key takes. */
const maxTextLength = 200;

export const secretPrefix = "secret:";

const missingKeyPrefix = "missing-key-ip:";

/**
 * Encodes a key as text, different for different keys. `42`, `42n` and `"42"` are the same key (so changing the JSON type does not evade
 * a limit); `["a", "b"]`, `["a,b"]`, `[["a", "b"]]` and `"a,b"` are four. Plain strings of up to 200 characters are not changed; a longer
 * key or part is replaced by its SHA-256. No key has the text of a secret's digest or of a client without a key.
 * @throws FloodgateError `FLOODGATE_INVALID_KEY` if the key is invalid.
 */
export function encodeKey(key: Key): string {
  return countedText(key);
}

/**
 * Reverses `encodeKey`. A text that `encodeKey` never writes is taken as it is.
 * @returns undefined if the text holds the hash of a long key or part: the key cannot be found from that.
 */
export function decodeKey(text: string): Key | undefined {
  if (/^\\#[\da-f]{64}$/.test(text)) return undefined;
  const [, inner] = /^\((.*)\)$/s.exec(text) ?? [];
  if (inner !== undefined) {
    const parts = splitParts(inner).map(decodeKey);
    return parts.includes(undefined) ? undefined : (parts as Key);
  }
  const plain = text.slice(1);
  return escaped(plain) === text ? plain : text;
}

/** Splits at commas that are not escaped. */
function splitParts(text: string): string[] {
  const parts = [""];
  for (const [token] of text.matchAll(/\\?./gs)) {
    if (token === ",") parts.push("");
    else parts[parts.length - 1] += token.length > 1 ? token.slice(1) : token;
  }
  return parts;
}

/** The text of a key whose secret parts are digests. */
export function countedText(key: CountedKey): string {
  return bounded(wholeText(key));
}

/**
 * The text of a client without a key.
 * @param address from `ipKey`.
 */
export function missingKeyText(address: string): string {
  return missingKeyPrefix + address;
}

/** The key of a text that events show: the address of a client without a key, else as `decodeKey` finds it. */
export function keyOfText(text: string): LimiterKey | undefined {
  return text.startsWith(missingKeyPrefix) ? { missingKeyIp: text.slice(missingKeyPrefix.length) } : decodeKey(text);
}

export function isMissingKeyIp(key: LimiterKey): key is MissingKeyIp {
  return typeof key === "object" && key !== null && "missingKeyIp" in key;
}

/** @throws FloodgateError `FLOODGATE_INVALID_KEY` for `{ missingKeyIp }`: unchecked JSON of a request must not choose another client. */
export function checkConsumedKey(key: Key, method: "consume" | "charge" = "consume"): Key {
  if (!isMissingKeyIp(key)) return key;
  throw new FloodgateError(
    "FLOODGATE_INVALID_KEY",
    `\`${method}\` takes a key, but was given { missingKeyIp }, which is for peek, reset, block and unblock. Write limiter.${method}(String(value)).`,
  );
}

/**
 * The text of a client without a key, from a limiter's argument.
 * @throws FloodgateError `FLOODGATE_INVALID_KEY` unless it is an address, or a network as events show it: `2001:db8::/56`.
 */
export function namedMissingKeyText({ missingKeyIp: ip }: MissingKeyIp, ipv6Prefix: number): string {
  const address = typeof ip === "string" ? namedAddress(ip, ipv6Prefix) : undefined;
  if (address !== undefined) return missingKeyText(address);
  throw new FloodgateError(
    "FLOODGATE_INVALID_KEY",
    `\`missingKeyIp\` must be an IP address, but was ${shown(ip)}. Write { missingKeyIp: "203.0.113.9" }.`,
  );
}

/** The client of an address in any notation, or of a network as events show it; undefined for any other text. */
export function namedAddress(ip: string, ipv6Prefix: number): string | undefined {
  const suffix = `/${ipv6Prefix}`;
  return ipKey(ip.includes(":") && ip.endsWith(suffix) ? ip.slice(0, -suffix.length) : ip, ipv6Prefix);
}

/** Whether a key or part is a client's IPv6 address on the internet. A short text such as "12::34" may be the app's own, so it is not one. */
export function isClientIpv6(part: unknown): boolean {
  if (typeof part !== "string" || part.split(":", 4).length < 4) return false;
  return ((parseIp(part)?.[0] ?? 0) & 0xe000) === 0x2000;
}

function bounded(text: string): string {
  return text.length <= maxTextLength ? text : `\\#${sha256(text)}`;
}

/**
 * A key as one text of any length.
 * @param depth how many tuples it is a part of.
 */
export function wholeText(key: unknown, depth = 0): string {
  switch (typeof key) {
    case "string":
      return escaped(key);
    case "bigint":
    case "boolean":
      return String(key);
    case "number":
      if (Number.isFinite(key)) return String(key);
      break;
    case "object":
      if (Array.isArray(key)) return tupleText(key, depth);
      if (key instanceof KeyDigest) return key.text;
  }
  throw invalidKey(key, depth);
}

/** Tuples, hashes, digests and keyless clients begin with "(", "\\", "secret:" or "missing-key-ip:", so such strings are escaped. */
function escaped(key: string): string {
  const first = key[0];
  // Most keys begin with another character, so the prefixes are rarely compared.
  const isMark = first === "(" || first === "\\" || (first === "s" && key.startsWith(secretPrefix));
  return isMark || (first === "m" && key.startsWith(missingKeyPrefix)) ? `\\${key}` : key;
}

/** Hashes a long part before escaping its commas, because escaping would take longer than hashing. */
function tupleText(key: readonly unknown[], depth: number): string {
  if (key.length === 0 || depth > 1) throw invalidKey(key);
  let text = "(";
  for (let i = 0; i < key.length; i++) {
    if (i > 0) text += ",";
    text += bounded(wholeText(key[i], depth + 1)).replace(/[\\,]/g, "\\$&");
  }
  return `${text})`;
}

function invalidKey(key: unknown, depth?: number): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_INVALID_KEY",
    `A key must be a string, a finite number, a bigint, a boolean, or a tuple of those, but ${depth ? "one " : ""}was ${shown(key)}. Write String(value), or return undefined if there is no key.`,
  );
}

/** Separates the parts of a tuple's text: a comma without a backslash before it. */
const maskedParts = /(?:\\.|[^\\,])+/gs;

/**
 * Shows enough of a key to recognise it, and not enough to use it: `203.0.113.x`, `2001:db8:x`, `us…42`. A tuple's parts are masked one by
 * one.
 */
export function maskKey(key: string): string {
  if (key === "global") return key;
  const [, tuple] = /^\((.*)\)$/s.exec(key) ?? [];
  if (tuple !== undefined) return `(${(tuple.match(maskedParts) ?? []).map((part) => maskKey(part.replace(/\\(.)/gs, "$1"))).join(", ")})`;
  const [, word, rest] = /^(missing-key-ip:|secret:|\\#)(.*)$/s.exec(key) ?? [];
  if (word === "missing-key-ip:") return word + maskKey(rest ?? "");
  if (word !== undefined) return `${word === "secret:" ? word : "#"}${rest?.slice(0, 4)}…`;
  const [, network] = /^(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}$/.exec(key) ?? [];
  if (network !== undefined) return `${network}.x`;
  if (key.includes(":") && ipKey(key.replace(/\/\d+$/, ""), 128) !== undefined) return `${key.split(":").slice(0, 2).join(":")}:x`;
  const letters = Array.from(key);
  if (letters.length < 3) return "…";
  return letters.length < 6 ? `${letters[0]}…` : `${letters.slice(0, 2).join("")}…${letters.slice(-2).join("")}`;
}
