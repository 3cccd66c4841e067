import type { CombinedDecision, Decision } from "../decide/decision.js";
import { decisiveChecks } from "../decide/zero-limits.js";
import { emitDecisions, timeOfAsking } from "../events/decision-events.js";
import { checkConsumedKey, type Key } from "../limits/key.js";
import type { Limiter } from "../limits/limiter.js";
import { checkCost } from "../limits/settle.js";
import type { CheckedRule } from "../responses/outcome.js";
import type { Version } from "../rules/active-rules.js";
import { decideWithBans } from "../rules/bans.js";
import type { RuleCheck } from "../rules/compiled-rule.js";
import { FloodgateError, shown } from "../support/errors.js";
import { didYouMean } from "../support/options.js";
import { andThen, type Promised } from "../support/promises.js";
import type { RateLimit } from "./rate-limit.js";

/** A rule by its name, with what to count. */
export interface NamedCheck {
  readonly name: string;
  readonly key: Key;
  /** A whole number of at least 1; default 1. */
  readonly cost?: number | undefined;
  /** The plan of the key. Without it, and if the rule has no such plan, the rule's own policy counts. */
  readonly plan?: string | undefined;
}

/** The decisions of rules that were checked by their names. */
export interface NamedDecisions {
  readonly allowed: boolean;
  /** The most restrictive decision; undefined if every key is exempt. */
  readonly decision: Decision | undefined;
  /** What each named check asked, in order; undefined if its key is exempt. */
  readonly checks: readonly (CheckedRule | undefined)[];
  /** The decision of each, in order; undefined if its key is exempt, or if another rule has a limit of 0, which rejects everything. */
  readonly decisions: readonly (Decision | undefined)[];
}

/**
 * Checks rules by their names, with keys and costs that the caller gives: all are charged, or none. What a rule says of requests (its match,
 * key and cost) does not apply. Its mode, exemptions and ban do.
 * @throws FloodgateError `FLOODGATE_UNKNOWN_RULE`, `FLOODGATE_INVALID_KEY` or `FLOODGATE_INVALID_COST`, and `FLOODGATE_DUPLICATE_NAME` if a
 * rule is named twice with the same key.
 */
export function checkNamed<Req>(limit: RateLimit<Req>, named: readonly NamedCheck[]): Promised<NamedDecisions> {
  const { version } = limit;
  const asked = namedRuleChecks(named, version);
  const checks = decisiveChecks(asked.filter((check) => check !== undefined));
  if (checks.length === 0) return { allowed: true, decision: undefined, checks: asked, decisions: asked.map(() => undefined) };
  const askedMs = timeOfAsking(limit.client.guard);
  return andThen<CombinedDecision, NamedDecisions>(decideWithBans(checks, limit.client, true), (whole) => {
    const { allowed, decision, all } = whole;
    emitDecisions(limit.listener, checks, whole, askedMs);
    const decisions = asked.map((check) => (check === undefined ? undefined : all[checks.indexOf(check)]));
    return { allowed, decision, checks: asked, decisions };
  });
}

/**
 * The checks of rules that are named, in order; undefined for exempt keys.
 * @throws FloodgateError if a rule is unknown or is named twice with the same key, or if a key or a cost is invalid.
 */
function namedRuleChecks<Req>(named: readonly NamedCheck[], version: Version<Req>): (RuleCheck<Req> | undefined)[] {
  const seen = new Set<string>();
  return named.map(({ name, key, cost = 1, plan }) => {
    const rule = version.rules.all.find((rule) => rule.name === name) ?? unknownRule(name, [...version.limiters.keys()]);
    // The limiter says why it has no limit, if its policy is a function of the request.
    const limit = rule.plans?.get(plan as string) ?? (version.limiters.get(name) as Limiter).limit;
    const text = rule.keyText(checkConsumedKey(key));
    const id = JSON.stringify([name, text]);
    if (seen.has(id)) {
      const message = `${shown(name)} is checked twice with the same key. Check it once, with the sum of the costs.`;
      throw new FloodgateError("FLOODGATE_DUPLICATE_NAME", message);
    }
    seen.add(id);
    const check = rule.checkOf(limit, text, checkCost(cost));
    return check === "exempt" ? undefined : check;
  });
}

function unknownRule(name: string, known: readonly string[]): never {
  const hint = didYouMean(name, known) || ` The rules are ${known.slice(0, 20).join(", ")}.`;
  throw new FloodgateError("FLOODGATE_UNKNOWN_RULE", `There is no rule ${shown(name)}.${hint}`);
}
