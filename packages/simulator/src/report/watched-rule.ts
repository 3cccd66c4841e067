import type { Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import { optionsOf, unlimited } from "./numbers.js";

/** A rule whose clients are watched. */
export interface WatchedRule {
  readonly name: string;
  readonly policy: Policy;
  readonly isShadow: boolean;
  /** Whether a request may be limited by something else than this policy: a ban, or the policy of a plan. */
  readonly hasMore: boolean;
}

/**
 * The same rules without their limits: they tell whom each request counts and what it costs, and limit none. Under a limit that nobody
 * reaches, the most of it that a client has used is the least limit under which the client is never limited.
 */
export function withoutLimits(set: RuleSet, watched: readonly WatchedRule[]): RuleSet {
  return { ...set, rules: set.rules.map((rule, i) => ({ ...withoutLimit(rule, (watched[i] as WatchedRule).policy), mode: "shadow" })) };
}

/** A rule that limits none. */
export function withoutLimit(rule: PlainRule, policy: Policy): PlainRule {
  const { limit: _limit, window: _window, plans: _plans, ban: _ban, settle: _settle, ...rest } = rule;
  return { ...rest, policy: measuring(policy) };
}

/** A log that nobody exceeds would hold every request, so its windows are measured apart, and anything cheap tells the clients. */
function measuring(policy: Policy): NonNullable<PlainRule["policy"]> {
  const options =
    policy.algorithm === "sliding-window-log" ? { algorithm: "fixed-window", limit: 2 ** 20, window: "1s" } : optionsOf(unlimited(policy));
  return options as unknown as NonNullable<PlainRule["policy"]>;
}
