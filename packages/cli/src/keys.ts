import type { Key, LimiterKey } from "@floodgate/core";
import { decodeKey, ipKey, isBuiltInKey, missingKeyText, type PlainRule, parseKeyName } from "@floodgate/core/rules";
import { Failure } from "./failure.js";

/** The key options of `status` and `reset`. */
export interface KeyOptions {
  /** The parts of the key, in the rule's order. The address may be given by `ip` instead. */
  readonly key?: readonly string[];
  readonly ip?: string;
  readonly ipv6Prefix: number;
}

/** The names in a rule's `key`, as written in the rules: `secret:user`. */
export function writtenKeyNames({ key = "ip" }: PlainRule): readonly string[] {
  return typeof key === "string" ? [key] : key;
}

/** The names in a rule's `key`, without `secret:`. */
export function keyNames(rule: PlainRule): readonly string[] {
  return writtenKeyNames(rule).map((name) => parseKeyName(name).name);
}

/** Whether a rule's key, or a part of it, is stored and shown as a digest only. */
export function hasSecretKey(rule: PlainRule): boolean {
  return writtenKeyNames(rule).some((name) => parseKeyName(name).secret);
}

/** Whether a rule counts requests without its key by their address. */
export function fallsBackToIp(rule: PlainRule): boolean {
  const { key = "ip", onMissingKey = "ip" } = rule;
  return key !== "ip" && onMissingKey === "ip" && keyNames(rule).some((name) => name !== "global" && name !== "route");
}

/** Whether the app defines this key, in its `keys`. */
export function isAppKey(name: string): boolean {
  return !isBuiltInKey(name);
}

/**
 * The key of a rule that these options name. Addresses are normalised as in the middleware. Keys of the app are parsed by `parseKey`; other
 * parts are taken as they are.
 * @throws Failure if there are too few or too many parts, or an address is invalid.
 */
export function countedKey(rule: PlainRule, { key: texts = [], ip, ipv6Prefix }: KeyOptions): LimiterKey {
  const names = keyNames(rule);
  // If the user mixes up the order of the parts, the text for the address may be a secret.
  const shown = hasSecretKey(rule) ? "the value given for the address" : undefined;
  const counted = (text: string): string => ipKey(clientAddress(text, ipv6Prefix, shown), ipv6Prefix) as string;
  // The address alone names a client that is counted by it because its key is missing.
  if (ip !== undefined && texts.length === 0 && fallsBackToIp(rule)) return { missingKeyIp: counted(ip) };
  // A key function of the app may return a tuple: then each `--key` is one part of it.
  if (typeof rule.key === "string" && isAppKey(names[0] as string) && ip === undefined && texts.length > 1)
    return texts.map(parseKey) as Key;
  const expected = names.filter((name) => name !== "global" && (name !== "ip" || ip === undefined));
  if (texts.length !== expected.length || (ip !== undefined && !names.includes("ip"))) throw wrongParts(rule, texts, ip);
  let next = 0;
  const parts = names.map((name): Key => {
    if (name === "global") return name;
    if (name === "ip") return counted(ip ?? (texts[next++] as string));
    const text = texts[next++] as string;
    return isAppKey(name) ? parseKey(text) : text;
  });
  return (Array.isArray(rule.key) ? parts : parts[0]) as Key;
}

function wrongParts(rule: PlainRule, texts: readonly string[], ip: string | undefined): Failure {
  const names = keyNames(rule);
  const options = names.filter((name) => name !== "global").map((name) => (name === "ip" ? "--ip <address>" : `--key <${name}>`));
  const advice = options.length === 0 ? "Give neither --key nor --ip" : `Write ${options.join(" ")}`;
  const missing = fallsBackToIp(rule) ? ", or only --ip <address> for a client whose key is missing" : "";
  const isAlone = ip === undefined;
  const count = isAlone && texts.length === 0 ? "no" : texts.length;
  const given = `${count} --key${isAlone ? "" : " and --ip"} ${isAlone && texts.length < 2 ? "was" : "were"} given`;
  return new Failure("usage", `${JSON.stringify(rule.name)} counts by ${names.join(", ")}, but ${given}. ${advice}${missing}.`);
}

/**
 * Checks a client address. An IPv6 network as it is printed (`2001:db8:0:100::/56`) becomes its first address.
 * @param shown what the error shows in place of a text that may be a secret.
 * @throws Failure if the address is invalid.
 */
export function clientAddress(text: string, ipv6Prefix: number, shown: string = JSON.stringify(text)): string {
  const suffix = `/${ipv6Prefix}`;
  const address = text.endsWith(suffix) ? text.slice(0, -suffix.length) : text;
  if (ipKey(address, ipv6Prefix) !== undefined) return address;
  throw new Failure("usage", `${shown} is not an IP address. Write 203.0.113.9 or 2001:db8::1.`);
}

/**
 * The key of a text as events and `floodgate` show it: see `decodeKey`.
 * @throws Failure if the text holds the hash of a long key or part.
 */
export function parseKey(text: string): Key {
  const key = decodeKey(text);
  if (key !== undefined) return key;
  throw new Failure("usage", `${JSON.stringify(text)} holds the hash of a text of more than 200 characters. Write the text itself.`);
}

/**
 * Makes a function that tells whether a key, as Redis holds it, is this one or has it as a part. An address may be in any notation, and also
 * names the clients that are counted by it because their key is missing.
 */
export function isKeyOrPart(text: string, ipv6Prefix: number): (stored: string) => boolean {
  const address = ipKey(text.replace(/\/\d+$/, ""), ipv6Prefix);
  const names = new Set([text, ...(address === undefined ? [] : [address, missingKeyText(address)])]);
  return (stored) => names.has(stored) || [decodeKey(stored) ?? stored].flat(2).some((part) => names.has(String(part)));
}
