import type { Policy } from "@floodgate/core";
import type { PlainRule, RuleSet } from "@floodgate/core/rules";
import { KeyIndex } from "../measure/key-index.js";
import type { LogSource } from "../read/source.js";
import type { Clients } from "../replay/clients.js";
import { defaultMaxClients, Replay } from "../replay/replay.js";
import { type ReplayOptions, replayLogs } from "../replay/replay-logs.js";
import { policyOf } from "../simulate.js";
import { Needs } from "../suggest/needs.js";
import { countAbove } from "../suggest/quantile.js";
import { BurstWatch } from "./burst.js";
import type { Burst, Grid, GridPoint, Timeline } from "./contract.js";
import { fitting, Lane, type LaneCounts } from "./lanes.js";
import { limitOption, policiesOf, policyWords, type SurveyedRule, withoutLimit, withoutLimits } from "./policies.js";
import { TimelineCounter } from "./timeline.js";
import { replayWith, World } from "./worlds.js";

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
/** The most limits that are tried in worlds: each takes much longer than in a lane. */
const maxWorlds = 8;

/**
 * Tries many limits for each rule. Reads the logs twice: first it measures what each client needs, then it replays the clients that need more
 * than a limit under that limit. The others would not be limited.
 * @throws FloodgateError if a rule or an option is invalid.
 */
export async function survey(sources: readonly LogSource[], set: RuleSet, options: SurveyOptions = {}): Promise<Survey> {
  const first = await measured(sources, set, options);
  const { rules, timeline } = first;
  if (timeline === undefined || (options.grid ?? defaultGrid) === 0) {
    return { timeline, rules: rules.map(() => ({ grid: undefined, burst: undefined })), notes: [] };
  }
  return replayedUnderLimits(sources, set, options, first, timeline);
}

interface Measured {
  readonly rules: readonly SurveyedRule[];
  readonly needs: readonly Needs[];
  /** The rules that share requests with another rule that rejects some. */
  readonly sharing: ReadonlySet<number>;
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
  const rejecting = rules.map((rule, i) => mayReject(rule, needs[i] as Needs, maxClients));
  const sharing = new Set([...rules.keys()].filter((i) => mayFail || [...(beside[i] ?? [])].some((j) => j !== i && rejecting[j])));
  return { rules, needs, sharing, timeline: counter.timeline };
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
      return { name: rule.name, policy: policyOf(rule), isShadow: rule.shadow, hasMore: ban !== undefined || plans !== undefined };
    });
  } finally {
    replay.close();
  }
}

async function replayedUnderLimits(
  sources: readonly LogSource[],
  set: RuleSet,
  options: SurveyOptions,
  { rules, needs, sharing }: Measured,
  timeline: Timeline,
): Promise<Survey> {
  const maxClients = options.maxClients ?? defaultMaxClients;
  const intervals = timeline.requests.length;
  const tried = rules.map((rule, i): Tried => {
    const own = needs[i] as Needs;
    const descending = own.descending();
    const { greatest } = own;
    const burst = greatest === undefined || rule.policy.quota === 0 ? undefined : new BurstWatch(rule.policy, greatest.key, greatest.atMs);
    const tried = { rule, needs: own, rankOf: own.ranks(), descending, lanes: [], worlds: [], withoutLimit: undefined, burst };
    if (descending.length === 0 || i >= maxRules) return tried;
    const isWorld = rule.hasMore || sharing.has(i);
    const count = options.grid ?? defaultGrid;
    const plain = set.rules[i] as PlainRule;
    const cost = typeof plain.cost === "number" ? plain.cost : 1;
    const policies = policiesOf(rule.policy, descending, isWorld ? Math.min(count, maxWorlds) : count, cost);
    if (!isWorld) {
      const kept = fitting(policies, rule.policy, descending);
      return { ...tried, lanes: kept.map((policy) => new Lane(policy, countAbove(descending, policy.quota), intervals)) };
    }
    const worlds = policies.map((policy) => new World(set, plain, policy, intervals, options));
    const alone = new Needs(rule.policy, new KeyIndex(maxClients));
    const replay = replayWith(set, plain, withoutLimit(plain, rule.policy), options, (key, decision, nowMs) =>
      alone.see(key, decision, nowMs),
    );
    return { ...tried, worlds, withoutLimit: { needs: alone, replay } };
  });
  const clients = await secondReading(sources, set, options, tried, timeline);
  return {
    timeline,
    rules: tried.map(({ rule, descending, lanes, worlds, withoutLimit, burst }) => ({
      grid: gridOf(rule.policy, lanes.length > 0 ? lanes : worlds, withoutLimit?.needs.descending() ?? descending),
      burst: burst?.result((key) => clients.shown(key)),
    })),
    notes: notesOf(tried, maxClients),
  };
}

function notesOf(tried: readonly Tried[], maxClients: number): string[] {
  const isFull = tried.some(({ needs, lanes, worlds }) => needs.isFull && lanes.length + worlds.length > 0);
  const full = `Other limits were tried on the first ${maxClients.toLocaleString("en")} clients of a rule only, so their numbers are too low. Raise --max-clients.`;
  const without = tried.filter(({ lanes, worlds, descending }) => descending.length > 0 && lanes.length + worlds.length === 0);
  return [
    ...(isFull ? [full] : []),
    ...without.map((each) =>
      tried.indexOf(each) >= maxRules
        ? `Other limits were tried for the first ${maxRules} rules only, so not for ${each.rule.name}.`
        : `The states of ${each.rule.name} under other limits would need too much memory, so they were not tried. A smaller --max-clients helps.`,
    ),
  ];
}

/** What was found under the limits of one rule; undefined if none was tried. */
function gridOf(own: Policy, counts: readonly (LaneCounts & { readonly policy: Policy })[], descending: Float64Array): Grid | undefined {
  if (counts.length === 0) return undefined;
  // Limits above one that limits nobody say nothing more.
  const enough = counts.findIndex(({ limited }) => limited === 0);
  const shown = counts.filter(({ policy }, i) => enough < 0 || i <= enough || policy.quota === own.quota);
  return {
    option: limitOption(own),
    points: shown.map(({ policy, limited, clientsLimited, limitedAt }): GridPoint => {
      return { limit: policy.quota, limited, clientsLimited, limitedAt: pairs(limitedAt) };
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

/** A rule, and the limits under which it is tried. */
interface Tried {
  readonly rule: SurveyedRule;
  readonly needs: Needs;
  /** What the clients need, the greatest first, and the place of each client in that order. */
  readonly descending: Float64Array;
  readonly rankOf: Uint32Array;
  /** A rule has worlds if it has a ban or plans, or if a rule beside it rejects requests; else lanes. */
  readonly lanes: readonly Lane[];
  readonly worlds: readonly World[];
  /** The rule without its limit beside the other rules, and what its clients need there. */
  readonly withoutLimit: { readonly needs: Needs; readonly replay: Replay } | undefined;
  readonly burst: BurstWatch | undefined;
}

/**
 * Replays the logs under the rules without their limits, and decides each request under the limits that could limit its client. No rule
 * rejects requests of a rule with lanes, so it counts the same requests as with all limits. A world gets the requests that it could decide
 * otherwise: those of a client that needs more than its limit, or that another rule could reject.
 * @returns the clients, to show their names.
 */
async function secondReading(
  sources: readonly LogSource[],
  set: RuleSet,
  options: ReplayOptions,
  tried: readonly Tried[],
  { startMs, stepMs }: Timeline,
): Promise<Clients> {
  const first = startMs / stepMs;
  let interval = 0;
  const rules = tried.map(({ rule }) => rule);
  const numbers = new Map(rules.map(({ name }, i) => [name, i]));
  /** What the client of the current request needs of each rule. */
  const needed = new Float64Array(rules.length);
  const replay = new Replay(withoutLimits(set, rules), options);
  replay.onDecision = (key, { name, cost }) => {
    const number = numbers.get(name) as number;
    const { rule, needs, rankOf, lanes, burst } = tried[number] as Tried;
    if (burst?.key === key) burst.see(replay.nowMs, cost);
    const client = needs.keys.of(key);
    // The policies of plans have limits of their own.
    needed[number] = client < 0 || rule.hasMore ? Number.POSITIVE_INFINITY : needs.needOf(client);
    if (client < 0) return;
    const rank = rankOf[client] as number;
    // The lowest limit is the first. A client that does not need more than it does not need more than the others.
    for (const lane of lanes) {
      if (rank >= lane.clients) return;
      lane.decide(rank, replay.nowMs, cost, interval);
    }
  };
  /** Whether a rule could reject the current request as it is. */
  const couldReject = ({ isShadow, policy }: SurveyedRule, i: number): boolean => !isShadow && (needed[i] as number) > policy.quota;
  await replayLogs(sources, set, options, replay, (request) => {
    interval = Math.floor(Math.max(replay.nowMs, request.timeMs) / stepMs) - first;
    needed.fill(0);
    replay.decide(request);
    const rejecting = rules.filter(couldReject).length;
    for (const [i, { rule, worlds, withoutLimit }] of tried.entries()) {
      withoutLimit?.replay.decide(request);
      const others = rejecting - (couldReject(rule, i) ? 1 : 0);
      for (const world of worlds) {
        if (others > 0 || (needed[i] as number) > world.policy.quota) world.decide(request, interval);
      }
    }
  });
  for (const { worlds, withoutLimit } of tried) {
    withoutLimit?.replay.close();
    for (const world of worlds) world.close();
  }
  return replay.clients;
}
