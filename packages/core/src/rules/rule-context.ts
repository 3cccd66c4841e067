import type { EventListener, WarningCode } from "../events/events.js";
import { emitWarning, listenerOf } from "../events/listeners.js";
import type { CostFunction, KeyFunction } from "../requests/functions.js";
import { ipv6PrefixOption, type RequestOptions } from "../requests/request-options.js";
import type { RequestReader } from "../requests/request-reader.js";
import { FloodgateError, shown } from "../support/errors.js";
import { functionOrNothing } from "../support/options.js";
import type { Costs } from "./cost.js";
import type { DescriptorRules } from "./descriptor-rule.js";
import { compileExempt, type Exempted } from "./exempt.js";
import { isBuiltInKey, type KeyNames } from "./key-source.js";
import type { LimitOptions, Rule } from "./rule.js";
import type { RuleSource } from "./rule-source.js";
import { keyDigests } from "./secret-keys.js";

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

/** What the rules of one middleware share when they are compiled: the names that they may use, and whom none of them counts. */
export interface RuleContext<Req> extends KeyNames<Req> {
  readonly costs: Costs<Req>;
  /** Whether the app tells each request's plan. */
  readonly hasPlan: boolean;
  readonly ipv6Prefix: number;
  readonly exempt: readonly Exempted[];
  /** For rules that count descriptors of Envoy's rate limit service. Undefined if only HTTP requests are limited. */
  readonly descriptors: DescriptorRules | undefined;
  readonly checkRule: RequestReader<Req>["checkRule"];
  readonly cost: RequestReader<Req>["cost"];
  readonly warn: Warn;
}

/** Warns of a probable mistake in the rule with this name: `onEvent`, or the console once in a process. */
export type Warn = (code: WarningCode, message: string, name: string) => void;

/** @throws FloodgateError if an option is wrong. */
export function ruleContext<Req>(
  where: string,
  options: RulesOptions<Req, string>,
  { descriptors, checkRule, cost }: Pick<RequestReader<Req>, "descriptors" | "checkRule" | "cost">,
  onEvent: EventListener | undefined,
): RuleContext<Req> {
  const keys = options.keys ?? {};
  const costs = options.costs ?? {};
  const listener = listenerOf(onEvent);
  for (const [name, cost] of Object.entries(costs)) functionOrNothing(where, `costs.${name}`, cost, "(req) => req.body.items.length");
  for (const [name, key] of Object.entries(keys)) {
    functionOrNothing(where, `keys.${name}`, key, "(req) => req.user?.id");
    if (isBuiltInKey(name)) {
      throw new FloodgateError(
        "FLOODGATE_CONFLICTING_OPTIONS",
        `${where}: \`keys\` cannot define ${shown(name)} anew. Give it another name.`,
      );
    }
  }
  return {
    keys,
    costs,
    hasPlan: options.plan !== undefined,
    ipv6Prefix: ipv6PrefixOption(where, options.ipv6Prefix),
    digests: keyDigests(where, options),
    exempt: options.rules === undefined ? [] : compileExempt(where, options.exempt),
    descriptors,
    checkRule,
    cost,
    warn: (code, message, name) => emitWarning(listener, code, message, `${code} ${name}`),
  };
}
