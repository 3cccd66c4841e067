import type { Policy } from "@floodgate/core";
import { leastValue } from "../measure/quantiles.js";
import { limitOption, policyWords, withLimit } from "../policies/options.js";
import type { Grid, GridPoint } from "./contract.js";
import type { TriedLimit } from "./second-reading.js";

/**
 * The policy under the limits of a grid, the lowest first; the policy itself among them.
 * @param descending what the clients need, the greatest first; at least one.
 * @param count about how many.
 * @param cost what each request costs, if the rule says so: a lower limit is refused.
 */
export function policiesOf(policy: Policy, descending: Float64Array, count: number, cost: number): Policy[] {
  const limits = gridLimits(descending, policy.quota, count, Math.max(1, cost));
  return limits.flatMap((limit) => (limit === policy.quota ? policy : (withLimit(policy, limit) ?? [])));
}

/** Shares of clients whose limits are always in a grid. */
const touched = [0.0001, 0.001, 0.01, 0.05];

/**
 * The limits of a grid: the rule's own, those that touch certain shares of the clients, and about `count` others. The others grow by a constant
 * factor, from a limit that touches most clients to one that touches none.
 * @param descending what the clients need, the greatest first; at least one.
 * @param valid the lowest limit that is valid, beside the rule's own.
 */
function gridLimits(descending: Float64Array, own: number, count: number, valid: number): number[] {
  const most = Math.max(valid, descending[0] as number);
  const least = Math.min(most, Math.max(valid, Math.min(own, descending[Math.floor(0.75 * (descending.length - 1))] as number)));
  const limits = new Set([own, least, most]);
  for (const share of touched) limits.add(Math.max(least, leastValue(descending, share).value));
  const factor = (most / least) ** (1 / Math.max(1, count - 1));
  for (let i = 1; i < count - 1; i++) {
    const limit = twoDigits(least * factor ** i, Math.round);
    if (limit > least && limit < most) limits.add(limit);
  }
  return [...limits].sort((a, b) => a - b);
}

/** What was found under the limits of one rule; undefined if none was tried. */
export function gridOf(own: Policy, limits: readonly TriedLimit[], descending: Float64Array): Grid | undefined {
  if (limits.length === 0) return undefined;
  // Limits above one that limits nobody say nothing more.
  const enough = limits.findIndex(({ clientsLimited }) => clientsLimited.size === 0);
  const shown = limits.filter(({ policy }, i) => enough < 0 || i <= enough || policy.quota === own.quota);
  return {
    option: limitOption(own),
    points: shown.map(({ policy, clientsLimited, limitedAt }): GridPoint => {
      const limited = limitedAt.reduce((sum, count) => sum + count, 0);
      return { limit: policy.quota, limited, clientsLimited: clientsLimited.size, limitedAt: pairs(limitedAt) };
    }),
    own: shown.findIndex(({ policy }) => policy.quota === own.quota),
    needs: countedNeeds(descending),
    policy: policyWords(own),
  };
}

function pairs(counts: Uint32Array): number[] {
  const found: number[] = [];
  counts.forEach((count, i) => {
    if (count > 0) found.push(i, count);
  });
  return found;
}

/** How many clients have each need. Numbers above 100 are rounded up to two digits, so that there are at most some hundreds. */
function countedNeeds(descending: Float64Array): [number, number][] {
  const counts = new Map<number, number>();
  for (let i = descending.length - 1; i >= 0; i--) {
    const need = twoDigits(descending[i] as number, Math.ceil);
    counts.set(need, (counts.get(need) ?? 0) + 1);
  }
  return [...counts];
}

/** A number with two digits that count, as people would choose it. */
function twoDigits(value: number, round: (value: number) => number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return round(value / unit) * unit;
}
