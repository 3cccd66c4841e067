import type { CostFunction, KeyFunction } from "../requests/functions.js";
import type { RequestOptions } from "../requests/request-options.js";
import type { LimitOptions, Rule } from "./rule.js";
import type { RuleSource } from "./rule-source.js";

/** The options of a middleware that concern its rules. `keys` alone defines the names of keys. */
export interface RulesOptions<Req, Own extends string = never> extends LimitOptions<Req, NoInfer<Own>>, RequestOptions<Req> {
  /** The limit's name in headers, store keys and events. Limits of one name on one store share a count. Default `"default"`. */
  name?: string;
  /** Several limits, checked in one atomic step; or a source of live rules, such as `await fileRules("limits.yaml")`. */
  rules?: readonly Rule<Req, NoInfer<Own>>[] | RuleSource;
  /** The keys that `key` and rules refer to by name. Each function runs once per request, however many rules use it. */
  keys?: Readonly<Record<Own, KeyFunction<Req>>>;
  /** The costs that `cost` and `settle` refer to by name. Each function runs once per request, however many rules use it. */
  costs?: Readonly<Record<string, CostFunction<Req>>>;
  /**
   * Makes the digests of secret keys HMACs. At least 32 characters, the same in every process. Without it, digests are plain SHA-256, which
   * does not protect values that can be guessed, such as passwords and short tokens.
   */
  keySecret?: string;
}
