import { optionsOf, type Policy, type PolicyOptions, toPolicy } from "../algorithms/policy.js";
import type { Duration } from "../support/duration.js";
import { FloodgateError, inside, shown } from "../support/errors.js";
import { checkOptions } from "../support/options.js";

/** The numbers of a policy that a plan may say anew; those that it leaves out are the rule's own. */
export interface PlanNumbers {
  readonly limit?: number;
  readonly window?: Duration;
  readonly buckets?: number;
  readonly burst?: number;
  readonly capacity?: number;
  readonly refill?: number;
  readonly leak?: number;
  readonly every?: Duration;
  readonly maxDelayMs?: number;
}

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
  // In what is no number the plans of a rule are alike.
  const numbers = Object.keys(usual).filter((word) => !["algorithm", "style", "countRejected"].includes(word));
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
