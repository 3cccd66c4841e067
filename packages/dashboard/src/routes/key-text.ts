import type { Key, LimiterKey } from "@floodgate/core";
import { decodeKey, ipKey } from "@floodgate/core/rules";

const missing = "missing-key-ip:";

/** The key of a text that events show. Undefined if the text holds the hash of a long key: the key cannot be found from that. */
export function keyOfText(text: string): LimiterKey | undefined {
  return text.startsWith(missing) ? { missingKeyIp: text.slice(missing.length) } : decodeKey(text);
}

/**
 * The key that somebody has typed, for a rule. A network such as `2001:db8::/56` becomes its first address; the rule's limiter groups addresses
 * by its own `ipv6Prefix`.
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
  if (name === "ip") {
    const address = typed.replace(/^(.*:.*)\/\d+$/, "$1");
    return ipKey(address, 128) === undefined ? undefined : address;
  }
  return name === "global" && typed !== "global" ? undefined : typed;
}
