import { decision } from "../algorithms/algorithm.js";
import type { Decision } from "./decision.js";
import type { Limit } from "./limit.js";

/** Whether the limit of a check or a limiter is 0: its rejections need no store and no state. */
export function isZero({ limit }: { readonly limit: Limit }): boolean {
  return limit.policy.quota === 0;
}

/** What a limit of 0 says of every request. No wait helps. */
export function zeroDecision(limit: Limit, cost: number): Decision {
  return decision(limit, 0, false, 0, Number.POSITIVE_INFINITY, 0, 0, cost, Date.now());
}
