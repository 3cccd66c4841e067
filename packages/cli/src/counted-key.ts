import { ipKey, type Key, type PlainRule } from "@floodgate/core";
import { isOwnKey, keyNames } from "./app.js";
import { Failure } from "./failure.js";

/**
 * The key that a rule counts, of the texts that stand for its parts: an address as the middleware normalises it.
 * @throws Failure where they are too few or too many, or an address is none.
 */
export function countedKey(rule: PlainRule, texts: readonly string[], ipv6Prefix: number): Key {
  const names = keyNames(rule);
  if (texts.length === 1 && names.join() !== "ip" && rule.onMissingKey === "ip") {
    const address = addressOf(texts[0] as string, ipv6Prefix);
    if (address !== undefined) return ["ip", address];
  }
  const wanted = names.filter((name) => name !== "global");
  // What an app's own key answers may be a tuple.
  const [only] = names;
  if (names.length === 1 && only !== undefined && isOwnKey(only) && texts.length > 1) return texts;
  if (texts.length !== wanted.length) {
    const write = wanted.length === 0 ? "Write none" : `Write ${wanted.map((name) => `--key <${name}>`).join(" ")}`;
    throw new Failure(
      "usage",
      `${JSON.stringify(rule.name)} counts by ${names.join(", ")}, and ${texts.length} --key were given. ${write}.`,
    );
  }
  let next = 0;
  const parts = names.map((name): string => {
    if (name === "global") return name;
    const text = texts[next++] as string;
    if (name !== "ip") return text;
    const address = addressOf(text, ipv6Prefix);
    if (address !== undefined) return address;
    throw new Failure(
      "usage",
      `${JSON.stringify(rule.name)} counts by ip, and ${JSON.stringify(text)} is no address. Write --key 203.0.113.9.`,
    );
  });
  return Array.isArray(rule.key) ? parts : (parts[0] as string);
}

/** An address, or what it is counted as already: `2001:db8:0:100::/56`. */
function addressOf(text: string, ipv6Prefix: number): string | undefined {
  const suffix = `/${ipv6Prefix}`;
  return ipKey(text.endsWith(suffix) ? text.slice(0, -suffix.length) : text, ipv6Prefix);
}
