import { FloodgateError, fixedWindow, type Policy } from "@floodgate/core";
import { type PlainRule, type RuleSet, toPolicy } from "@floodgate/core/rules";
import { isWindow, optionsOf } from "../compare/policy-text.js";
import { leastValue } from "../suggest/needs.js";
import type { PolicyWords } from "./contract.js";

/** The option that is a policy's limit: the most units at once, at its own rate. */
export function limitOption({ algorithm }: Policy): string {
  return algorithm === "concurrency" || isWindow(algorithm) ? "limit" : algorithm === "gcra" ? "burst" : "capacity";
}

/** A policy as a rules file writes it. */
export function policyWords(policy: Policy): PolicyWords {
  return { algorithm: policy.algorithm, ...optionsOf(policy) };
}

/** A policy; undefined if an algorithm cannot have these numbers. */
export function policyOrNone(options: object): Policy | undefined {
  try {
    return toPolicy("report", options);
  } catch (error) {
    if (error instanceof FloodgateError) return undefined;
    throw error;
  }
}

/** The same policy with another limit; undefined if that would be too large for it. */
function withLimit(policy: Policy, limit: number): Policy | undefined {
  return policyOrNone({ ...policyWords(policy), [limitOption(policy)]: limit });
}

/** The same policy with a limit that hardly any client reaches. */
function unlimited(policy: Policy): Policy {
  for (let limit = 2 ** 30; limit > policy.quota; limit = Math.floor(limit / 2)) {
    const larger = withLimit(policy, limit);
    if (larger !== undefined) return larger;
  }
  return policy;
}

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
 * The limits of a grid: the rule's own, those that touch certain shares of the clients, and about `count` others, which grow by the same
 * factor from a limit that touches most clients to one that touches none.
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
    const limit = rounded(least * factor ** i);
    if (limit > least && limit < most) limits.add(limit);
  }
  return [...limits].sort((a, b) => a - b);
}

/** A number that people would choose: two digits that count. */
function rounded(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1);
  return Math.round(value / unit) * unit;
}

/** A rule that other limits are tried for. */
export interface SurveyedRule {
  readonly name: string;
  readonly policy: Policy;
  readonly isShadow: boolean;
  /** Whether a request may be limited by something else than this policy: a ban, or the policy of a plan. */
  readonly hasMore: boolean;
}

/** The same rules without their limits: they tell whom each request counts and what it costs, and limit none. */
export function withoutLimits(set: RuleSet, surveyed: readonly SurveyedRule[]): RuleSet {
  return { ...set, rules: set.rules.map((rule, i) => ({ ...withoutLimit(rule, (surveyed[i] as SurveyedRule).policy), mode: "shadow" })) };
}

export function withoutLimit({ plans: _plans, ban: _ban, settle: _settle, ...rule }: PlainRule, policy: Policy): PlainRule {
  return withPolicy(rule, measuringPolicy(policy));
}

export function withPolicy({ limit: _limit, window: _window, ...rule }: PlainRule, policy: Policy): PlainRule {
  return { ...rule, policy: policy as unknown as NonNullable<PlainRule["policy"]> };
}

/**
 * A policy that measures what clients need, and limits hardly any: under a limit that nobody reaches, the most of it that a client has used
 * is the least limit under which the client is never limited. A log that nobody exceeds would hold every request, so its windows are
 * measured apart, and anything cheap tells the clients.
 */
export function measuringPolicy(policy: Policy): Policy {
  return policy.algorithm === "sliding-window-log" ? fixedWindow({ limit: 2 ** 20, window: "1s" }) : unlimited(policy);
}
