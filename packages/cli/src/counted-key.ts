import type { Key, LimiterKey } from "@floodgate/core";
import { ipKey, type PlainRule } from "@floodgate/core/rules";
import { clientAddress } from "./address.js";
import { fallsBackToIp, hasSecretKey, isOwnKey, keyNames } from "./app.js";
import { Failure } from "./failure.js";
import { keyOf } from "./key-text.js";

/** Whom a rule counts, as the command line tells it. */
export interface KeyOptions {
  /** What the rule counts by, in its order: without the address where that is told by `ip`. */
  readonly key?: readonly string[];
  readonly ip?: string;
  readonly ipv6Prefix: number;
}

/**
 * The key that a rule counts: an address as the middleware normalises it, of an app's own key what is printed so, all else as it is.
 * @throws Failure if it has too few or too many parts, or an address is invalid.
 */
export function countedKey(rule: PlainRule, { key: texts = [], ip, ipv6Prefix }: KeyOptions): LimiterKey {
  const names = keyNames(rule);
  // Who mixes up the order of the parts may give a secret for the address.
  const shown = hasSecretKey(rule) ? "what is given for the address" : undefined;
  const counted = (text: string): string => ipKey(clientAddress(text, ipv6Prefix, shown), ipv6Prefix) as string;
  // Without a key of its own, a request is counted by its address.
  if (ip !== undefined && texts.length === 0 && fallsBackToIp(rule)) return { missingKeyIp: counted(ip) };
  // What an app's own key answers may be a tuple, given by its parts.
  if (typeof rule.key === "string" && isOwnKey(names[0] as string) && ip === undefined && texts.length > 1) return texts.map(keyOf) as Key;
  const wanted = names.filter((name) => name !== "global" && (name !== "ip" || ip === undefined));
  if (texts.length !== wanted.length || (ip !== undefined && !names.includes("ip"))) throw miscounted(rule, texts, ip);
  let next = 0;
  const parts = names.map((name): Key => {
    if (name === "global") return name;
    if (name === "ip") return counted(ip ?? (texts[next++] as string));
    const text = texts[next++] as string;
    return isOwnKey(name) ? keyOf(text) : text;
  });
  return (Array.isArray(rule.key) ? parts : parts[0]) as Key;
}

function miscounted(rule: PlainRule, texts: readonly string[], ip: string | undefined): Failure {
  const names = keyNames(rule);
  const wanted = names.filter((name) => name !== "global").map((name) => (name === "ip" ? "--ip <address>" : `--key <${name}>`));
  const own = wanted.length === 0 ? "neither --key nor --ip" : wanted.join(" ");
  const other = fallsBackToIp(rule) ? ", or only --ip <address> for who is counted by it for want of a key" : "";
  const given = `${texts.length} --key${ip === undefined ? "" : " and --ip"} were given`;
  return new Failure("usage", `${JSON.stringify(rule.name)} counts by ${names.join(", ")}, and ${given}. Write ${own}${other}.`);
}
