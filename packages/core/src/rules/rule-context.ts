import type { EventListener, WarningCode } from "../events/events.js";
import { emitWarning, listenerOf } from "../events/listeners.js";
import { ipv6PrefixOption } from "../requests/request-options.js";
import type { RequestReader } from "../requests/request-reader.js";
import { FloodgateError, shown } from "../support/errors.js";
import { functionOrNothing } from "../support/options.js";
import type { Costs } from "./cost.js";
import type { DescriptorRules } from "./descriptor-rule.js";
import { compileExempt, type Exempted } from "./exempt.js";
import { isBuiltInKey, type KeyNames } from "./key-source.js";
import type { RulesOptions } from "./rules-options.js";
import { keyDigests } from "./secret-keys.js";

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
