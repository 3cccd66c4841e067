import type { Limit } from "../decide/decision.js";
import type { CostFunction } from "../requests/functions.js";
import { FloodgateError, shown, wrongOption } from "../support/errors.js";
import { didYouMean, wholeOf } from "../support/options.js";
import type { Promised } from "../support/promises.js";

/** The app's `costs`, which rules refer to by name. */
export type Costs<Req> = Readonly<Record<string, CostFunction<Req>>>;

/** @throws FloodgateError `FLOODGATE_UNKNOWN_COST` if the app does not define this name. */
function namedCost<Req>(where: string, option: string, name: string, costs: Costs<Req>): CostFunction<Req> {
  if (Object.hasOwn(costs, name)) return costs[name] as CostFunction<Req>;
  const message = `${where}: \`${option}\` names ${shown(name)}, which \`costs\` does not define.${didYouMean(name, Object.keys(costs))} Write costs: { ${/^\w+$/.test(name) ? name : shown(name)}: (req) => ${option === "settle" ? "req.tokensUsed" : "req.body.items.length"} }.`;
  throw new FloodgateError("FLOODGATE_UNKNOWN_COST", message, { at: [option] });
}

/**
 * Checks that a constant cost can pass. Limits of 0 are left out, because they reject everything on purpose.
 * @param limits the limits of the rule and of its plans.
 * @throws FloodgateError `FLOODGATE_INVALID_COST` if the cost is above each limit.
 */
export function checkReachable(where: string, cost: number, limits: Iterable<Limit>): void {
  const quotas = [...limits].map(({ policy }) => policy.quota).filter((quota) => quota > 0);
  if (quotas.length === 0 || quotas.some((quota) => cost <= quota)) return;
  const message = `${where}: a \`cost\` of ${cost} is above the limit, ${Math.max(...quotas)}, so every request would be rejected. Lower the cost or raise the limit.`;
  throw new FloodgateError("FLOODGATE_INVALID_COST", message, { at: ["cost"] });
}

/** @throws FloodgateError `FLOODGATE_INVALID_COST` unless the cost is a whole number of at least 0. */
export function checkRuleCost(where: string, cost: unknown): number {
  if (typeof cost === "number" && Number.isSafeInteger(cost) && cost >= 0) return cost;
  const message = `${where}: \`cost\` must be ${wholeOf(1, cost)}, or 0 for a free request, but was ${shown(cost)}. Write cost: ${typeof cost === "string" && Number(cost) > 0 ? Number(cost) : 1}.`;
  throw new FloodgateError("FLOODGATE_INVALID_COST", message, { at: ["cost"] });
}

/** A number as text, from the environment for example: no name of a cost. */
const isNumber = /^\d+$/;

/** The cost of a rule: a number, or a function of the request. */
export function costOf<Req>(where: string, cost: unknown, costs: Costs<Req>): number | CostFunction<Req> {
  if (typeof cost === "function") return cost as CostFunction<Req>;
  return typeof cost === "string" && !isNumber.test(cost) ? namedCost(where, "cost", cost, costs) : checkRuleCost(where, cost);
}

/** What a request has really cost: a function of the request. */
export function settleOf<Req>(
  where: string,
  settle: unknown,
  costs: Costs<Req>,
  known?: (name: string) => CostFunction<Req> | undefined,
): CostFunction<Req> | undefined {
  if (settle === undefined || typeof settle === "function") return settle as CostFunction<Req> | undefined;
  if (typeof settle === "string") return known?.(settle) ?? namedCost(where, "settle", settle, costs);
  throw wrongOption(where, "settle", "a function or the name of one of `costs`", settle, "settle: (req) => req.tokensUsed");
}

/** Whether to refund a request, by its response status. */
export type RefundWhen = (status: number) => Promised<boolean>;

/** A function, or a list of statuses: `"5xx,404"`. */
export type RefundOption = RefundWhen | string;

/** A list of statuses: `"5xx,404"`. */
export const statusList: RegExp = /^[1-5](?:[0-9]{2}|xx)(?:\s*,\s*[1-5](?:[0-9]{2}|xx))*$/;

/** The status of a request whose client left. `4xx` does not cover it: otherwise a client could disconnect early and never pay. */
const clientLeft = 499;

/** @throws FloodgateError `FLOODGATE_INVALID_OPTION` if it is neither a function nor a list of statuses. */
export function refundWhen(where: string, option: unknown): RefundWhen | undefined {
  if (option === undefined || typeof option === "function") return option as RefundWhen | undefined;
  if (typeof option !== "string" || !statusList.test(option)) {
    const example = 'refundWhen: (status) => status >= 500, or refundWhen: "5xx"';
    throw wrongOption(where, "refundWhen", "a function or a list of statuses", option, example);
  }
  const statuses = new Set(option.split(/\s*,\s*/));
  return (status) => statuses.has(`${status}`) || (status !== clientLeft && statuses.has(`${Math.floor(status / 100)}xx`));
}
