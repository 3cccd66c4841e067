import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import { Needs } from "../measure/needs.js";
import { KeyIndex } from "../measure/per-client.js";
import type { LogSource } from "../read/source.js";
import { defaultMaxClients, Replay, type ReplayOptions, replayLogs } from "../replay/replay.js";
import { policyOf } from "../simulate.js";
import { type SurveyedRule, unlimitedRules } from "./changed-rules.js";
import type { Timeline } from "./contract.js";
import type { LaneRule } from "./lanes.js";
import { TimelineCounter } from "./timeline.js";

/** A rule, and what the first reading has found out. */
export interface MeasuredRule extends SurveyedRule, Omit<LaneRule, "clients"> {
  readonly needs: Needs;
  /** Whether it rejects some requests, and whether it shares requests with another rule that does. */
  readonly rejects: boolean;
  readonly shares: boolean;
}

export interface FirstReading {
  readonly rules: readonly MeasuredRule[];
  /** Whether each request is decided by the policies of the rules alone, and counts for all of them that match. */
  readonly isPlain: boolean;
  readonly timeline: Timeline | undefined;
}

/** The first reading: what each client needs of each rule, and which rules meet on one request. */
export async function firstReading(sources: readonly LogSource[], set: RuleSet, options: ReplayOptions): Promise<FirstReading> {
  const maxClients = options.maxClients ?? defaultMaxClients;
  const rules = surveyedRules(set, options);
  const numbers = new Map(rules.map(({ name }, i) => [name, i]));
  const needs = rules.map(({ policy }) => new Needs(policy, new KeyIndex(maxClients)));
  const counter = new TimelineCounter();
  const beside = rules.map(() => new Set<number>());
  let isUncertain = false;
  let met: number[] = [];
  const replay = new Replay(unlimitedRules(set, rules), options);
  replay.onEvent = (event) => {
    if (event.type === "missing-key") isUncertain = true;
  };
  replay.onDecision = (key, decision) => {
    const rule = numbers.get(decision.name) as number;
    needs[rule]?.see(key, decision, replay.nowMs);
    met.push(rule);
  };
  await replayLogs(sources, set, options, replay, (request) => {
    met = [];
    replay.decide(request);
    counter.add(replay.nowMs);
    if (met.length > 1) for (const rule of met) for (const other of met) beside[rule]?.add(other);
  });
  // A request without a key may fail or be rejected as a whole, and count for no rule.
  const mayFail = rules.length > 1 && (isUncertain || replay.failed.size > 0);
  const rejects = needs.map((own, i) => mayReject(rules[i] as SurveyedRule, own, maxClients));
  const measured = rules.map((rule, i): MeasuredRule => {
    const own = needs[i] as Needs;
    const shares = mayFail || [...(beside[i] ?? [])].some((j) => j !== i && rejects[j]);
    return { ...rule, number: i, needs: own, descending: own.descending(), rejects: rejects[i] === true, shares };
  });
  const isPlain = !mayFail && measured.every(({ hasMore, needs: { isFull } }) => !hasMore && !isFull);
  return { rules: measured, isPlain, timeline: counter.timeline };
}

/** Whether a rule rejects any request, as it is. If it does not, the rules beside it count as if it were not there. */
function mayReject({ isShadow, hasMore, policy }: SurveyedRule, needs: Needs, maxClients: number): boolean {
  return !isShadow && (hasMore || needs.keys.size >= maxClients || (needs.greatest?.need ?? 0) > policy.quota);
}

function surveyedRules(set: RuleSet, options: ReplayOptions): SurveyedRule[] {
  const replay = new Replay(set, { ...options, maxClients: 1 });
  try {
    return replay.rules.map((rule, i) => {
      const { ban, plans } = set.rules[i] as PlainRule;
      const hasMore = ban !== undefined || plans !== undefined || rule.rejectsAmbiguousPath;
      return { name: rule.name, policy: policyOf(rule), isShadow: rule.shadow, hasMore };
    });
  } finally {
    replay.close();
  }
}
