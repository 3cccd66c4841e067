import type { RateLimitOptions } from "../middleware/rate-limit-options.js";
import { FloodgateError } from "../support/errors.js";
import { CompiledRule, type RuleContext } from "./compiled-rule.js";
import { compileRules } from "./compiled-rules.js";
import { besideRules, limitWords, type Rule } from "./rule.js";

/** What only a rule can say where there are some. */
const ruleWords = [...limitWords.filter((word) => besideRules[word] === "error"), "name"];
const sharedWords = limitWords.filter((word) => besideRules[word] === "default");

/** The one rule that a middleware's own options make. */
export function ownRule<Req>(where: string, options: RateLimitOptions<Req, string>, context: RuleContext<Req>): CompiledRule<Req> {
  return new CompiledRule(where, { ...options, name: options.name === undefined ? "default" : options.name }, context);
}

/**
 * The rules that a middleware is given, each with what its own options say for all of them.
 * @throws FloodgateError where those say what only a rule can.
 */
export function givenRules<Req>(
  where: string,
  options: RateLimitOptions<Req, string>,
  rules: readonly Rule<Req, string>[],
  context: RuleContext<Req>,
): CompiledRule<Req>[] {
  const beside = given(options, ruleWords);
  if (beside.length > 0) {
    throw new FloodgateError(
      "FLOODGATE_CONFLICTING_OPTIONS",
      `${where}: with \`rules\` each rule says its own name and limit, so \`${beside.map(([word]) => word).join("`, `")}\` cannot stand beside them.`,
    );
  }
  const shared = Object.fromEntries(given(options, sharedWords));
  const isRule = (rule: unknown): rule is object => typeof rule === "object" && rule !== null;
  const fill = (rule: object): object => ({ ...shared, ...Object.fromEntries(given(rule, Object.keys(rule))) });
  const filled = Array.isArray(rules) ? rules.map((rule) => (isRule(rule) ? fill(rule) : rule)) : rules;
  return compileRules(where, filled, context);
}

function given(options: object, words: readonly string[]): [string, unknown][] {
  const values = options as Readonly<Record<string, unknown>>;
  return words.filter((word) => values[word] !== undefined).map((word) => [word, values[word]]);
}
