import type { Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import { measuringPolicy, Needs } from "../measure/needs.js";
import { KeyIndex } from "../measure/per-client.js";
import { countAbove } from "../measure/quantiles.js";
import { number } from "../print/format.js";
import type { LogSource } from "../read/source.js";
import { defaultMaxClients, type ReplayOptions } from "../replay/replay.js";
import { BurstWatch } from "./burst.js";
import { unlimitedRule, withPolicy } from "./changed-rules.js";
import type { Burst, Grid, Timeline } from "./contract.js";
import { type FirstReading, firstReading, type MeasuredRule } from "./first-reading.js";
import { gridOf, policiesOf } from "./grid.js";
import { fitting, Lane, type LaneRule, World } from "./lanes.js";
import { secondReading, type TriedLimit, type TriedRule } from "./second-reading.js";

export interface SurveyOptions extends ReplayOptions {
  /** About how many limits are tried for each rule. Default 24; 0 tries none. */
  readonly grid?: number | undefined;
}

/** What a log would be under other limits. */
export interface Survey {
  readonly timeline: Timeline | undefined;
  /** By rule, in their order. */
  readonly rules: readonly { readonly grid: Grid | undefined; readonly burst: Burst | undefined }[];
  readonly notes: readonly string[];
}

const defaultGrid = 24;
/** Only this many rules get a grid. */
const maxRules = 12;
/** The most limits that are tried for a rule that shares requests: each takes longer. */
const maxSharedLimits = 8;

/**
 * Tries many limits for each rule. Reads the logs twice: first it measures what each client needs, then it replays the clients that need more
 * than a limit under that limit. The others would not be limited.
 * @throws FloodgateError if a rule or an option is invalid.
 */
export async function survey(sources: readonly LogSource[], set: RuleSet, options: SurveyOptions = {}): Promise<Survey> {
  const first = await firstReading(sources, set, options);
  const { timeline } = first;
  if (timeline === undefined || (options.grid ?? defaultGrid) === 0) {
    return { timeline, rules: first.rules.map(() => ({ grid: undefined, burst: undefined })), notes: [] };
  }
  const tried = first.rules.map((rule): TriedRule => {
    const { greatest } = rule.needs;
    const burst = greatest === undefined || rule.policy.quota === 0 ? undefined : new BurstWatch(rule.policy, greatest.key, greatest.atMs);
    const unlimited = { rule, rankOf: rule.needs.ranks(), limits: [], withoutLimit: undefined, burst };
    if (rule.descending.length === 0 || rule.number >= maxRules) return unlimited;
    return { ...unlimited, ...limitsOf(rule, set, options, first, timeline) };
  });
  const clients = await secondReading(sources, set, options, tried, timeline);
  return {
    timeline,
    rules: tried.map(({ rule, limits, withoutLimit, burst }) => ({
      grid: gridOf(rule.policy, limits, withoutLimit?.needs.descending() ?? rule.descending),
      burst: burst?.result((key) => clients.shown(key)),
    })),
    notes: notesOf(tried, options.maxClients ?? defaultMaxClients),
  };
}

/** The limits under which a rule is tried; and the rule without its limit, if another rule may reject its requests. */
function limitsOf(
  rule: MeasuredRule,
  set: RuleSet,
  options: SurveyOptions,
  { rules, isPlain }: FirstReading,
  timeline: Timeline,
): Pick<TriedRule, "limits" | "withoutLimit"> {
  const { descending } = rule;
  const plain = set.rules[rule.number] as PlainRule;
  const shares = rule.hasMore || rule.shares;
  const { grid: count = defaultGrid, maxClients = defaultMaxClients } = options;
  const cost = typeof plain.cost === "number" ? plain.cost : 1;
  const policies = policiesOf(rule.policy, descending, shares ? Math.min(count, maxSharedLimits) : count, cost);
  const limit = (policy: Policy, decider: Lane | World): TriedLimit => {
    return { policy, decider, limitedAt: new Uint32Array(timeline.requests.length), clientsLimited: new Set() };
  };
  const without = (decider: Lane | World): TriedRule["withoutLimit"] => ({
    needs: new Needs(rule.policy, new KeyIndex(maxClients)),
    decider,
  });
  if (shares && !isPlain) {
    const world = (changed: PlainRule): World => new World(set, plain, changed, options);
    return {
      limits: policies.map((policy) => limit(policy, world(withPolicy(plain, policy)))),
      withoutLimit: without(world(unlimitedRule(plain, rule.policy))),
    };
  }
  const beside = shares ? rules.filter((other) => other.rejects && other !== rule).map((other) => laneRule(other, true)) : [];
  const under = (policy: Policy): LaneRule => laneRule(rule, shares, policy);
  const kept = fitting(policies.map(under), rule.policy.quota, beside);
  return {
    limits: kept.map((own) => limit(own.policy, new Lane(own, beside))),
    withoutLimit: shares ? without(new Lane({ ...under(measuringPolicy(rule.policy)), clients: descending.length }, beside)) : undefined,
  };
}

/**
 * A rule as a lane decides it.
 * @param shares whether other rules may reject its requests.
 */
function laneRule(rule: MeasuredRule, shares: boolean, policy = rule.policy): LaneRule {
  const { descending } = rule;
  // Refills at intervals begin with the first request that counts. So a client may need more if another rule rejects some of its requests.
  const mayNeedMore = shares && policy.algorithm === "token-bucket" && policy.style === "interval";
  return { ...rule, policy, clients: mayNeedMore ? descending.length : countAbove(descending, policy.quota) };
}

function notesOf(tried: readonly TriedRule[], maxClients: number): string[] {
  const isFull = tried.some(({ rule, limits }) => rule.needs.isFull && limits.length > 0);
  const full = `Other limits were tried on the first ${number(maxClients)} clients of a rule only, so their numbers are too low. Raise --max-clients.`;
  const without = tried.filter(({ limits, rule }) => rule.descending.length > 0 && limits.length === 0);
  return [
    ...(isFull ? [full] : []),
    ...without.map(({ rule: { name, number } }) =>
      number >= maxRules
        ? `Other limits were tried for the first ${maxRules} rules only, so not for ${name}.`
        : `The states of ${name} under other limits would need too much memory, so they were not tried. A smaller --max-clients helps.`,
    ),
  ];
}
