import type { Key, LimiterKey } from "@floodgate/core";
import { ipKey } from "@floodgate/core/rules";

/** How many bits of an IPv6 address identify a client, unless the app says otherwise. */
const ipv6Prefix = 56;
const missing = "missing-key-ip:";

/**
 * The key of a text that events show: `(a,b)` is a tuple, `\(a` a text that begins with a parenthesis. Undefined if the text holds the hash of
 * a long key, from which the key cannot be found.
 */
export function keyOfText(text: string): LimiterKey | undefined {
  return text.startsWith(missing) ? { missingKeyIp: text.slice(missing.length) } : parsed(text);
}

function parsed(text: string): Key | undefined {
  if (/^\\#[\da-f]{64}$/.test(text)) return undefined;
  const [, inner] = /^\((.*)\)$/s.exec(text) ?? [];
  if (inner !== undefined) {
    const parts = splitParts(inner).map(parsed);
    return parts.includes(undefined) ? undefined : (parts as Key);
  }
  return /^\\(?:[(\\]|secret:|missing-key-ip:)/.test(text) ? text.slice(1) : text;
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

/**
 * The key that somebody has typed, for a rule: addresses as the middleware counts them.
 * @param words what the rule counts by: "ip, user". Undefined for limiters.
 * @returns undefined if the rule counts by something else, such as more parts.
 */
export function typedKey(typed: string | readonly string[], words: string | undefined): LimiterKey | undefined {
  const names = words === undefined || words === "a function" ? undefined : words.split(", ");
  if (typeof typed === "string") {
    if (typed.startsWith(missing)) return { missingKeyIp: typed.slice(missing.length) };
    if (names === undefined) return typed;
    return names.length === 1 ? part(names[0], typed) : undefined;
  }
  if (names !== undefined && names.length !== typed.length) return undefined;
  const parts = typed.map((text, i) => part(names?.[i], text));
  return parts.includes(undefined) ? undefined : (parts as Key);
}

function part(name: string | undefined, typed: string): string | undefined {
  if (name === "ip") return ipKey(typed.replace(/^(.*:.*)\/\d+$/, "$1"), ipv6Prefix);
  return name === "global" && typed !== "global" ? undefined : typed;
}
