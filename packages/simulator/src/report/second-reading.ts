import type { Policy } from "@floodgate/core";
import type { RuleSet } from "@floodgate/core/rules";
import type { Needs } from "../measure/needs.js";
import type { LogSource } from "../read/source.js";
import type { Clients } from "../replay/reader.js";
import { defaultMaxClients, Replay, type ReplayOptions, replayLogs } from "../replay/replay.js";
import type { BurstWatch } from "./burst.js";
import { unlimitedRules } from "./changed-rules.js";
import type { Timeline } from "./contract.js";
import type { MeasuredRule } from "./first-reading.js";
import { type CountedRequest, type Lane, World } from "./lanes.js";

/** One limit of a grid, and what it did. */
export interface TriedLimit {
  readonly policy: Policy;
  readonly decider: Lane | World;
  /** Limited requests by interval of the timeline. */
  readonly limitedAt: Uint32Array;
  readonly clientsLimited: Set<string>;
}

/** A rule, and the limits under which it is tried. */
export interface TriedRule {
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
export async function secondReading(
  sources: readonly LogSource[],
  set: RuleSet,
  options: ReplayOptions,
  tried: readonly TriedRule[],
  { startMs, stepMs }: Timeline,
): Promise<Clients> {
  const { maxClients = defaultMaxClients } = options;
  const first = startMs / stepMs;
  const rules = tried.map(({ rule }) => rule);
  const numbers = new Map(rules.map(({ name, number }) => [name, number]));
  /** What the client of the current request needs of each rule. */
  const needed = new Float64Array(rules.length);
  let counted: CountedRequest[] = [];
  const replay = new Replay(unlimitedRules(set, rules), options);
  replay.onDecision = (key, { name, cost }) => {
    const number = numbers.get(name) as number;
    const { rule, rankOf, burst } = tried[number] as TriedRule;
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
