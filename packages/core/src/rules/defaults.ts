import { FloodgateError } from "../support/errors.js";
import { CompiledRule } from "./compiled-rule.js";
import { compileRules } from "./compiled-rules.js";
import { besideRules, limitWords, type Rule, type RulesOptions } from "./rule.js";
import type { RuleContext } from "./rule-context.js";

/** Options that a middleware with `rules` refuses: each rule sets its own. */
const ruleWords = [...limitWords.filter((word) => besideRules[word] === "error"), "name"];
const sharedWords = limitWords.filter((word) => besideRules[word] === "default");

/** Compiles the one rule of a middleware without `rules`. */
export function ruleOfOptions<Req>(where: string, options: RulesOptions<Req, string>, context: RuleContext<Req>): CompiledRule<Req> {
  return new CompiledRule(where, { ...options, name: options.name === undefined ? "default" : options.name }, context);
}

/**
 * Compiles the rules of a middleware. Its own options are the defaults of each rule.
 * @throws FloodgateError if a rule is wrong, or if the middleware sets an option that only a rule can set.
 */
export function rulesWithDefaults<Req>(
  where: string,
  options: RulesOptions<Req, string>,
  rules: readonly Rule<Req, string>[],
  context: RuleContext<Req>,
): CompiledRule<Req>[] {
  const beside = definedOf(options, ruleWords);
  if (beside.length > 0) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: with \`rules\` each rule says its own name and limit, so \`${beside.map(([word]) => word).join("`, `")}\` cannot stand beside them.`,
    );
  }
  const shared = Object.fromEntries(definedOf(options, sharedWords));
  const isRule = (rule: unknown): rule is object => typeof rule === "object" && rule !== null;
  const fill = (rule: object): object => {
    const filled = { ...shared, ...Object.fromEntries(definedOf(rule, Object.keys(rule))) };
    if (!isForKey(filled) && !("onMissingKey" in rule)) delete filled["onMissingKey"];
    return filled;
  };
  const filled = Array.isArray(rules) ? rules.map((rule) => (isRule(rule) ? fill(rule) : rule)) : rules;
  return compileRules(where, filled, context);
}

/** `"ip"` cannot stand in for the address itself, so as a default it is for the other rules. */
function isForKey({ onMissingKey, key = "ip" }: { readonly [option: string]: unknown }): boolean {
  return onMissingKey !== "ip" || key !== "ip";
}

/** The options among these that are not undefined. */
function definedOf(options: object, words: readonly string[]): [string, unknown][] {
  const values = options as Readonly<Record<string, unknown>>;
  return words.filter((word) => values[word] !== undefined).map((word) => [word, values[word]]);
}
