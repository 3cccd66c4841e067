import { isDeepStrictEqual } from "node:util";
import { FloodgateError } from "@floodgate/core";
import { decodeKey, type Grant, type GrantChange, ipKey } from "@floodgate/core/rules";
import { isMap, isSeq, parseDocument, stringify, type YAMLMap } from "yaml";
import { readYaml } from "./yaml.js";

/**
 * Writes a grant into the text of rules, in place of an earlier one for the same key; without a `grant` it only removes that. Grants that
 * are over are removed too. Comments stay; the spaces inside brackets may change. The text is not checked. If other rules have these grants
 * by an anchor, all is written out, without anchors and comments: they keep what they had.
 * @param change.key the key's text, as events show it.
 * @throws FloodgateError `FLOODGATE_UNKNOWN_RULE` if there is no such rule, `FLOODGATE_INVALID_KEY` if the text holds the hash of a long
 * key or part.
 * @example
 * const changed = withGrant(text, { rule: "posts", key: "42", grant: { plan: "pro", until: "2027-01-31" } });
 */
export function withGrant(text: string, { rule, key: keyText, grant, textOf }: GrantChange, nowMs: number = Date.now()): string {
  const key = decodeKey(keyText);
  if (key === undefined || keyText.startsWith("missing-key-ip:")) {
    const known = key === undefined ? "only the hash of a key of more than 200 characters is known" : "this client has none";
    throw new FloodgateError("FLOODGATE_INVALID_KEY", `A grant needs the key itself, but ${known}.`);
  }
  const document = parseDocument(text, { schema: "core", stringKeys: true });
  const rules = document.get("rules");
  const items = isSeq(rules) ? rules.items : [];
  const at = items.findIndex((item) => isMap(item) && item.get("name") === rule);
  if (at < 0) {
    throw new FloodgateError("FLOODGATE_UNKNOWN_RULE", `There is no rule ${JSON.stringify(rule)}, so nothing can be granted under it.`);
  }
  const inRule = items[at] as YAMLMap;
  // Undefined if there are no anchors, or if the text is not valid.
  const value = (text.includes("&") ? readYaml(text).value : undefined) as { rules: { grants?: Grant[] }[] } | undefined;
  const { grants: before = [] } = value?.rules[at] ?? (inRule.toJS(document) as { grants?: Grant[] });
  const isOfKey = (other: Grant): boolean => isWritten(key, other.key) || textOf?.(other.key) === keyText;
  const kept = before.filter((other) => !isOfKey(other) && Date.parse(other.until) > nowMs);
  if (grant === undefined && kept.length === before.length) return text;
  const grants = grant === undefined ? kept : [...kept, { key, ...grant }];
  // The list stays if it is empty: it lets a rule have plans that are only granted.
  inRule.set("grants", document.createNode(grants, { flow: inRule.flow === true }));
  const expected = value && { ...value, rules: value.rules.map((one, i) => (i === at ? { ...one, grants } : one)) };
  if (text.trimStart().startsWith("{")) return `${JSON.stringify(expected ?? document.toJS(), undefined, 2)}\n`;
  try {
    const changed = document.toString({ lineWidth: 0 });
    if (expected === undefined || isDeepStrictEqual(readYaml(changed).value, expected)) return changed;
  } catch (error) {
    // An alias may have lost its anchor.
    if (expected === undefined) throw error;
  }
  return stringify(expected, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** Whether a key is written in this way: `"42"` as `42`, and the network of a client, `2001:db8::/56`, as any of its addresses. */
function isWritten(key: unknown, written: unknown): boolean {
  if (Array.isArray(key))
    return Array.isArray(written) && key.length === written.length && key.every((part, i) => isWritten(part, written[i]));
  const [text, other] = [String(key), String(written)];
  const [suffix = ""] = /\/\d+$/.exec(text) ?? [];
  const address = suffix !== "" && other.endsWith(suffix) ? other.slice(0, -suffix.length) : other;
  return text === other || text === ipKey(address, Number(suffix.slice(1)));
}
