import { FloodgateError } from "@floodgate/core";
import { decodeKey, type Grant, type GrantChange } from "@floodgate/core/rules";
import { isMap, isSeq, parseDocument, type YAMLMap } from "yaml";

/**
 * Writes a grant into the text of rules, in place of an earlier one for the same key; without a `grant` it only removes that. Grants that
 * are over are removed too. Comments stay; the spaces inside brackets may change. The text is not checked.
 * @param change.key the key's text, as events show it.
 * @throws FloodgateError `FLOODGATE_UNKNOWN_RULE` if there is no such rule, `FLOODGATE_INVALID_KEY` if the text holds the hash of a long
 * key or part.
 * @example
 * const changed = withGrant(text, { rule: "posts", key: "42", grant: { plan: "pro", until: "2027-01-31" } });
 */
export function withGrant(text: string, { rule, key: keyText, grant }: GrantChange, nowMs: number = Date.now()): string {
  const key = decodeKey(keyText);
  if (key === undefined || keyText.startsWith("missing-key-ip:")) {
    const known = key === undefined ? "only the hash of a key of more than 200 characters is known" : "this client has none";
    throw new FloodgateError("FLOODGATE_INVALID_KEY", `A grant needs the key itself, but ${known}.`);
  }
  const isJson = text.trimStart().startsWith("{");
  const document = parseDocument(text, { schema: "core", stringKeys: true });
  const rules = document.get("rules");
  const found = isSeq(rules) ? rules.items.find((item) => isMap(item) && item.get("name") === rule) : undefined;
  if (found === undefined) {
    throw new FloodgateError("FLOODGATE_UNKNOWN_RULE", `There is no rule ${JSON.stringify(rule)}, so nothing can be granted under it.`);
  }
  const inRule = found as YAMLMap;
  const id = JSON.stringify(textsOf(key));
  const { grants: before = [] } = inRule.toJS(document) as { grants?: Grant[] };
  const kept = before.filter((other) => JSON.stringify(textsOf(other.key)) !== id && Date.parse(other.until) > nowMs);
  if (grant === undefined && kept.length === before.length) return text;
  const grants = grant === undefined ? kept : [...kept, { key, ...grant }];
  // The list stays if it is empty: it lets a rule have plans that are only granted.
  inRule.set("grants", document.createNode(grants, { flow: inRule.flow === true }));
  return isJson ? `${JSON.stringify(document.toJS(), undefined, 2)}\n` : document.toString({ lineWidth: 0 });
}

/** `42` and `"42"` are the same key. */
const textsOf = (key: unknown): unknown => (Array.isArray(key) ? key.map(textsOf) : String(key));
