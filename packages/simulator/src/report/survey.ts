import type { Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import { KeyIndex } from "../measure/numbers.js";
import { number } from "../print/numbers.js";
import type { LogSource } from "../read/source.js";
import type { Clients } from "../replay/reader.js";
import { defaultMaxClients, Replay, type ReplayOptions, replayLogs } from "../replay/replay.js";
import { policyOf } from "../simulate.js";
import { countAbove, Needs } from "../suggest/needs.js";
import { BurstWatch } from "./burst.js";
import type { Burst, Grid, GridPoint, Timeline } from "./contract.js";
import { type CountedRequest, fitting, Lane, type LaneRule, World } from "./lanes.js";
import {
  limitOption,
  measuringPolicy,
  policiesOf,
  policyWords,
  type SurveyedRule,
  withoutLimit,
  withoutLimits,
  withPolicy,
} from "./policies.js";
import { TimelineCounter } from "./timeline.js";

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
  const first = await measured(sources, set, options);
  const { timeline } = first;
  if (timeline === undefined || (options.grid ?? defaultGrid) === 0) {
    return { timeline, rules: first.rules.map(() => ({ grid: undefined, burst: undefined })), notes: [] };
  }
  const tried = first.rules.map((rule): Tried => {
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

/** A rule, and what the first reading has found out. */
interface MeasuredRule extends SurveyedRule, Omit<LaneRule, "clients"> {
  readonly needs: Needs;
  /** Whether it rejects some requests, and whether it shares requests with another rule that does. */
  readonly rejects: boolean;
  readonly shares: boolean;
}

interface Measured {
  readonly rules: readonly MeasuredRule[];
  /** Whether each request is decided by the policies of the rules alone, and counts for all of them that match. */
  readonly isPlain: boolean;
  readonly timeline: Timeline | undefined;
}

/** The first reading: what each client needs of each rule, and which rules meet on one request. */
async function measured(sources: readonly LogSource[], set: RuleSet, options: SurveyOptions): Promise<Measured> {
  const maxClients = options.maxClients ?? defaultMaxClients;
  const rules = surveyedRules(set, options);
  const numbers = new Map(rules.map(({ name }, i) => [name, i]));
  const needs = rules.map(({ policy }) => new Needs(policy, new KeyIndex(maxClients)));
  const counter = new TimelineCounter();
  const beside = rules.map(() => new Set<number>());
  let isUncertain = false;
  let met: number[] = [];
  const replay = new Replay(withoutLimits(set, rules), options);
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

function surveyedRules(set: RuleSet, options: SurveyOptions): SurveyedRule[] {
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

/** The limits under which a rule is tried; and the rule without its limit, if another rule may reject its requests. */
function limitsOf(
  rule: MeasuredRule,
  set: RuleSet,
  options: SurveyOptions,
  { rules, isPlain }: Measured,
  timeline: Timeline,
): Pick<Tried, "limits" | "withoutLimit"> {
  const { descending } = rule;
  const plain = set.rules[rule.number] as PlainRule;
  const shares = rule.hasMore || rule.shares;
  const { grid: count = defaultGrid, maxClients = defaultMaxClients } = options;
  const cost = typeof plain.cost === "number" ? plain.cost : 1;
  const policies = policiesOf(rule.policy, descending, shares ? Math.min(count, maxSharedLimits) : count, cost);
  const limit = (policy: Policy, decider: Lane | World): TriedLimit => {
    return { policy, decider, limitedAt: new Uint32Array(timeline.requests.length), clientsLimited: new Set() };
  };
  const without = (decider: Lane | World): Tried["withoutLimit"] => ({ needs: new Needs(rule.policy, new KeyIndex(maxClients)), decider });
  if (shares && !isPlain) {
    const world = (changed: PlainRule): World => new World(set, plain, changed, options);
    return {
      limits: policies.map((policy) => limit(policy, world(withPolicy(plain, policy)))),
      withoutLimit: without(world(withoutLimit(plain, rule.policy))),
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

function notesOf(tried: readonly Tried[], maxClients: number): string[] {
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

/** What was found under the limits of one rule; undefined if none was tried. */
function gridOf(own: Policy, limits: readonly TriedLimit[], descending: Float64Array): Grid | undefined {
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
    const need = descending[i] as number;
    const unit = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, need))) - 1);
    const rounded = Math.ceil(need / unit) * unit;
    counts.set(rounded, (counts.get(rounded) ?? 0) + 1);
  }
  return [...counts];
}

/** One limit of a grid, and what it did. */
interface TriedLimit {
  readonly policy: Policy;
  readonly decider: Lane | World;
  /** Limited requests by interval of the timeline. */
  readonly limitedAt: Uint32Array;
  readonly clientsLimited: Set<string>;
}

/** A rule, and the limits under which it is tried. */
interface Tried {
  readonly rule: MeasuredRule;
  /** The place of each client among those who need most. */
  readonly rankOf: Uint32Array;
  /** The lowest first. A world decides if it, or a rule beside it, has more than a policy, or if requests may fail; else a lane. */
  readonly limits: readonly TriedLimit[];
  /** The rule without its limit beside the other rules, and what its clients need there. */
  readonly withoutLimit: { readonly needs: Needs; readonly decider: Lane | World } | undefined;
  readonly burst: BurstWatch | undefined;
}

/**
 * Replays the logs under the rules without their limits, and decides each request under the limits that could limit its client. A world gets
 * the requests that it could decide otherwise: those of a client that needs more than its limit, or that another rule could reject.
 * @returns the clients, to show their names.
 */
async function secondReading(
  sources: readonly LogSource[],
  set: RuleSet,
  options: ReplayOptions,
  tried: readonly Tried[],
  { startMs, stepMs }: Timeline,
): Promise<Clients> {
  const { maxClients = defaultMaxClients } = options;
  const first = startMs / stepMs;
  const rules = tried.map(({ rule }) => rule);
  const numbers = new Map(rules.map(({ name, number }) => [name, number]));
  /** What the client of the current request needs of each rule. */
  const needed = new Float64Array(rules.length);
  let counted: CountedRequest[] = [];
  const replay = new Replay(withoutLimits(set, rules), options);
  replay.onDecision = (key, { name, cost }) => {
    const number = numbers.get(name) as number;
    const { rule, rankOf, burst } = tried[number] as Tried;
    if (burst?.key === key) burst.see(replay.nowMs, cost);
    const client = rule.needs.keys.of(key);
    // The policies of plans have limits of their own.
    needed[number] = client < 0 || rule.hasMore ? Number.POSITIVE_INFINITY : rule.needs.needOf(client);
    if (client >= 0) counted.push({ rule: number, key, client: rankOf[client] as number, cost });
  };
  /** Whether a rule could reject the current request as it is. */
  const couldReject = ({ isShadow, policy, number }: MeasuredRule): boolean => !isShadow && (needed[number] as number) > policy.quota;
  await replayLogs(sources, set, options, replay, (request) => {
    needed.fill(0);
    counted = [];
    replay.decide(request);
    const { nowMs } = replay;
    const interval = Math.floor(nowMs / stepMs) - first;
    const rejecting = rules.filter(couldReject).length;
    for (const { rule, limits, withoutLimit } of tried) {
      const others = rejecting - (couldReject(rule) ? 1 : 0);
      const unlimited = withoutLimit?.decider.decide(counted, nowMs, request);
      if (unlimited !== undefined) withoutLimit?.needs.see(unlimited.key, unlimited, nowMs);
      for (const { decider, policy, limitedAt, clientsLimited } of limits) {
        if (decider instanceof World && others === 0 && (needed[rule.number] as number) <= policy.quota) continue;
        const decision = decider.decide(counted, nowMs, request);
        if (decision === undefined || decision.allowed) continue;
        (limitedAt[interval] as number)++;
        if (clientsLimited.size < maxClients) clientsLimited.add(decision.key);
      }
    }
  });
  for (const { limits, withoutLimit } of tried) {
    for (const decider of [withoutLimit?.decider, ...limits.map((limit) => limit.decider)]) if (decider instanceof World) decider.close();
  }
  return replay.clients;
}
