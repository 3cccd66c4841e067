import { FloodgateError, type Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";

/** Which requests policies are tried on, and whom they count. */
export interface TrialOptions {
  /** What they count by, as in a rule's `key`; several are separated by commas. Default `ip`. */
  readonly by?: string | undefined;
  /** The requests that count: `POST /login`, `/posts/*`. Default: all. */
  readonly match?: string | undefined;
}

/** A rule in shadow mode for each policy: so each decides as if it were alone. The names are those of the policies in the map. */
export function trialRules(policies: ReadonlyMap<string, Policy>, options: TrialOptions): RuleSet {
  const common = trialWords(options);
  return { rules: [...policies].map(([name, policy]) => ({ name, ...common, policy, mode: "shadow" }) as unknown as PlainRule) };
}

/** The words of a rule that say which requests it counts, and by what. */
export function trialWords({ by = "ip", match }: TrialOptions): Pick<PlainRule, "key" | "match"> {
  const keys = by.split(",").map((key) => key.trim());
  return { key: keys.length === 1 ? (keys[0] as string) : keys, ...(match === undefined ? {} : { match: matchOf(match) }) };
}

/** The match of a rule that a text such as `POST /login` stands for. */
export function matchOf(text: string): { method?: string; path?: string } {
  const [, method, path] = /^(?:([A-Za-z-]+) +)?(\/\S*)$/.exec(text.trim()) ?? /^([A-Z]+)$/.exec(text.trim()) ?? [];
  if (method === undefined && path === undefined) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `--match ${JSON.stringify(text)} is no method and path. Write --match "POST /login" or --match "/posts/*".`,
    );
  }
  return { ...(method === undefined ? {} : { method: method.toUpperCase() }), ...(path === undefined ? {} : { path }) };
}
