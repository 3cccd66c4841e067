import type { Limit } from "../limits/limit.js";
import type { CostFunction } from "../requests/functions.js";
import { FloodgateError, shown } from "../support/errors.js";
import { nearest } from "../support/options.js";

/** The costs that rules name. */
export type Costs<Req> = Readonly<Record<string, CostFunction<Req>>>;

/** @throws FloodgateError where a name is none that the app defines. */
export function namedCost<Req>(where: string, option: string, name: string, costs: Costs<Req>): CostFunction<Req> {
  if (Object.hasOwn(costs, name)) return costs[name] as CostFunction<Req>;
  const known = Object.keys(costs);
  const near = nearest(name, known);
  throw new FloodgateError(
    "FLOODGATE_UNKNOWN_COST",
    `${where}: \`${option}\` names ${shown(name)}, which \`costs\` does not define.${near === undefined ? "" : ` Did you mean ${shown(near)}?`} Write costs: { ${/^\w+$/.test(name) ? name : shown(name)}: (req) => ${option === "settle" ? "req.tokensUsed" : "req.body.items.length"} }.`,
    { at: [option] },
  );
}

/**
 * A limit of 0 is a switch: it rejects everything on purpose.
 * @param limits the limits of the rule and of its plans.
 * @throws FloodgateError `FLOODGATE_INVALID_COST` if a constant cost is above each of them, so that no request would ever pass.
 */
export function checkReachable(where: string, cost: number, limits: Iterable<Limit>): void {
  const quotas = [...limits].map(({ policy }) => policy.quota).filter((quota) => quota > 0);
  if (quotas.length === 0 || quotas.some((quota) => cost <= quota)) return;
  throw new FloodgateError(
    "FLOODGATE_INVALID_COST",
    `${where}: a \`cost\` of ${cost} is above the limit, ${Math.max(...quotas)}, so that every request would be rejected. Lower the cost or raise the limit.`,
    { at: ["cost"] },
  );
}

/** What a request is asked for: a whole number, 0 where it is free. */
export function checkRuleCost(where: string, cost: unknown): number {
  if (typeof cost === "number" && Number.isSafeInteger(cost) && cost >= 0) return cost;
  throw new FloodgateError(
    "FLOODGATE_INVALID_COST",
    `${where}: \`cost\` must be a whole number of at least 1, or 0 for a request that is free, but was ${shown(cost)}. Write cost: 1.`,
    { at: ["cost"] },
  );
}
