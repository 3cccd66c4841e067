import type { Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import { measuringPolicy } from "../measure/needs.js";

/** A rule that other limits are tried for. */
export interface SurveyedRule {
  readonly name: string;
  readonly policy: Policy;
  readonly isShadow: boolean;
  /** Whether a request may be limited by something else than this policy: a ban, or the policy of a plan. */
  readonly hasMore: boolean;
}

/** The same rules without their limits: they tell whom each request counts and what it costs, and limit none. */
export function unlimitedRules(set: RuleSet, surveyed: readonly SurveyedRule[]): RuleSet {
  return { ...set, rules: set.rules.map((rule, i) => ({ ...unlimitedRule(rule, (surveyed[i] as SurveyedRule).policy), mode: "shadow" })) };
}

export function unlimitedRule({ plans: _plans, ban: _ban, settle: _settle, ...rule }: PlainRule, policy: Policy): PlainRule {
  return withPolicy(rule, measuringPolicy(policy));
}

export function withPolicy({ limit: _limit, window: _window, ...rule }: PlainRule, policy: Policy): PlainRule {
  return { ...rule, policy: policy as unknown as NonNullable<PlainRule["policy"]> };
}
