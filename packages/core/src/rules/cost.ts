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

/** What a request is asked for: a whole number, 0 where it is free. */
export function checkRuleCost(where: string, cost: unknown): number {
  if (typeof cost === "number" && Number.isSafeInteger(cost) && cost >= 0) return cost;
  throw new FloodgateError(
    "FLOODGATE_INVALID_COST",
    `${where}: \`cost\` must be a whole number of at least 1, or 0 for a request that is free, but was ${shown(cost)}. Write cost: 1.`,
    { at: ["cost"] },
  );
}
