import { toPolicy } from "../algorithms/policy.js";
import { definitionOf, optionsOf, type Policy, type PolicyOptions } from "../algorithms/registry.js";
import type { Duration } from "../support/duration.js";
import { FloodgateError, inside, shown } from "../support/errors.js";
import { checkOptions } from "../support/options.js";

type AnyOptions<Options = PolicyOptions> = Options extends unknown ? keyof Options : never;
type ValueOf<Option extends PropertyKey, Options = PolicyOptions> = Options extends { [Name in Option]?: infer Value } ? Value : never;
type NumberOf<Option extends PropertyKey> = [ValueOf<Option>] extends [Duration | undefined] ? Option : never;
type NumberOptions<Option extends PropertyKey = AnyOptions> = Option extends unknown ? NumberOf<Option> : never;

/** The numbers and durations of a policy that a plan may say anew; those that it leaves out are the rule's own. */
export type PlanNumbers = { readonly [Option in NumberOptions]?: ValueOf<Option> };

/** What a plan says: other numbers for the rule's policy, or a policy of its own. */
export type PlanOptions = PlanNumbers | Policy | PolicyOptions;

/**
 * The policy of each plan, by its name: one of its own, or the rule's with other numbers.
 * @throws FloodgateError where a plan's numbers do not fit the policy, or are none.
 */
export function compilePlans(where: string, plans: Readonly<Record<string, unknown>>, base: Policy): Map<string, Policy> {
  const example = "plans: { pro: { limit: 1000 } }";
  if (typeof plans !== "object" || plans === null || Array.isArray(plans) || Object.keys(plans).length === 0) {
    throw new FloodgateError(
      "FLOODGATE_INVALID_OPTION",
      `${where}: \`plans\` must name the plans whose numbers differ, but was ${shown(plans)}. Write ${example}.`,
    );
  }
  const usual = optionsOf(base);
  // The plans of a rule differ in numbers and durations only.
  const descriptions = Object.entries(definitionOf(base).options);
  const numbers = descriptions.filter(([, { type }]) => type === "whole number" || type === "duration").map(([option]) => option);
  const compiled = new Map<string, Policy>();
  for (const [name, plan] of Object.entries(plans)) {
    const place = `${where}: plans.${name}`;
    compiled.set(
      name,
      inside([name], () => {
        if (typeof plan === "object" && plan !== null && "algorithm" in plan) return toPolicy(place, plan);
        checkOptions(place, plan, numbers, example);
        return toPolicy(place, { ...usual, ...(plan as PlanNumbers) });
      }),
    );
  }
  return compiled;
}
