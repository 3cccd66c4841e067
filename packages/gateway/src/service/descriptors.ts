import type { Decision } from "@floodgate/core";
import { type Descriptor, getOrMake, type Outcome, type RateLimit, type RequestContext, unlimited } from "@floodgate/core/adapter";
import { type Asked, type CompiledRule, DescriptorIndex, type RuleCheck, recordUsage } from "@floodgate/core/rules";
import { mostRestrictive } from "@floodgate/core/store";
import type { GatewayRequest } from "./request.js";

type Rule = CompiledRule<GatewayRequest>;

/** What became of one descriptor of a request to Envoy's rate limit service. */
export interface DescriptorStatus {
  /** Whether all enforced limits of this descriptor allow it. The whole request passes only if all descriptors do. */
  readonly allowed: boolean;
  /** The most restrictive decision of its enforced limits, from which Envoy makes headers. Undefined if no such limit may be shown in headers. */
  readonly decision: Decision | undefined;
}

/** The result for all descriptors of one request: all were charged, or none was. */
export interface DescriptorsOutcome {
  readonly outcome: Outcome;
  /** One for each descriptor, in order. */
  readonly statuses: readonly DescriptorStatus[];
}

/** What one rule asks for one descriptor. */
interface DescriptorAsk {
  /** The place of the descriptor in the request. */
  readonly place: number;
  readonly hits: number;
  readonly rule: Rule;
  readonly asked: Asked<GatewayRequest>;
}

/**
 * Decides the descriptors of one request to Envoy's rate limit service in one step: all limits of all descriptors allow and are charged,
 * or none is.
 * @throws as `limit.decide` does.
 */
export async function decideDescriptors(
  limit: RateLimit<GatewayRequest>,
  requests: readonly GatewayRequest[],
): Promise<DescriptorsOutcome> {
  const { version } = limit;
  return decide(limit, version, requests).catch((error) => undecided(limit.fault(error, version), requests.length));
}

async function decide(
  limit: RateLimit<GatewayRequest>,
  version: RateLimit<GatewayRequest>["version"],
  requests: readonly GatewayRequest[],
): Promise<DescriptorsOutcome> {
  const contexts = requests.map((request) => limit.contextOf(request));
  const asks = await Promise.all(
    contexts.flatMap((context, place) => {
      const descriptor = context.descriptor as Descriptor;
      const rules = indexOf(version.rules.all).find(descriptor);
      return rules.map(async (rule): Promise<DescriptorAsk> => ({ place, hits: descriptor.hits, rule, asked: await rule.ask(context) }));
    }),
  );
  if (contexts.every(({ descriptor }) => descriptor?.isUsage)) {
    await Promise.all(asks.map((ask) => record(limit.client, ask)));
    return undecided(unlimited, requests.length);
  }
  const shared = sharedChecks(asks);
  const notCounted = asks.filter(({ asked }) => typeof asked === "string");
  const rules = [...notCounted.map(({ rule }) => rule), ...shared.map(({ check }) => check.rule)];
  const asked = [...notCounted.map((ask) => ask.asked), ...shared.map(({ check }) => check)];
  const outcome = await limit.decideAsked(contexts[0] as RequestContext<GatewayRequest>, version, rules, asked, oncePerName);
  const keyless = new Set(asks.filter((ask) => ask.asked === "missing-key").map(({ place }) => place));
  if (keyless.size === 0) return { outcome, statuses: statusesOf(requests.length, shared, outcome) };
  return { outcome, statuses: requests.map((_, place) => ({ allowed: !keyless.has(place), decision: undefined })) };
}

/** Records usage that has happened. Nothing is refused, so each limit is charged by itself. */
function record(client: Parameters<typeof recordUsage>[0], { asked, hits }: DescriptorAsk): ReturnType<typeof recordUsage> | undefined {
  return typeof asked === "string" || hits === 0 ? undefined : recordUsage(client, asked.limit, asked.key, safe(asked.cost * hits));
}

const indexes = new WeakMap<readonly Rule[], DescriptorIndex<Rule>>();

/** The index of one version of the rules. */
function indexOf(rules: readonly Rule[]): DescriptorIndex<Rule> {
  return getOrMake(indexes, rules, () => new DescriptorIndex(rules));
}

/** The outcome of a request whose descriptors no limit has decided. */
export function undecided(outcome: Outcome, count: number): DescriptorsOutcome {
  return { outcome, statuses: Array.from({ length: count }, () => ({ allowed: outcome.action === "pass", decision: undefined })) };
}

/** One check for all descriptors that count under the same limit and key. */
interface SharedCheck {
  readonly check: RuleCheck<GatewayRequest>;
  readonly places: ReadonlySet<number>;
}

/** The checks of all descriptors, in order. A store takes each limit and key once, so their costs are added. */
function sharedChecks(asks: readonly DescriptorAsk[]): SharedCheck[] {
  const byCount = new Map<string, { check: RuleCheck<GatewayRequest>; places: Set<number> }>();
  for (const { place, hits, asked } of asks) {
    if (typeof asked === "string") continue;
    const check = hits === 0 ? { ...asked, dryRun: true } : { ...asked, cost: safe(asked.cost * hits) };
    const { name, policy } = check.limit;
    // Unique, because names and state kinds contain no line breaks.
    const count = `${name}\n${policy.stateKind}\n${check.key}`;
    const known = byCount.get(count);
    if (known === undefined) byCount.set(count, { check, places: new Set([place]) });
    else {
      known.places.add(place);
      known.check = bothOf(known.check, check);
    }
  }
  return [...byCount.values()];
}

function bothOf(a: RuleCheck<GatewayRequest>, b: RuleCheck<GatewayRequest>): RuleCheck<GatewayRequest> {
  // Plans may differ: the smaller limit holds for both.
  const limit = b.limit.policy.quota < a.limit.policy.quota ? b.limit : a.limit;
  if (a.dryRun === true && b.dryRun === true) return { ...a, limit };
  return { ...(a.dryRun === true ? b : a), limit, cost: a.dryRun === true ? b.cost : b.dryRun === true ? a.cost : safe(a.cost + b.cost) };
}

function safe(cost: number): number {
  return Math.min(cost, Number.MAX_SAFE_INTEGER);
}

/** The status of each of `count` descriptors. A limit of 0 may have rejected the request before other checks were decided. */
function statusesOf(count: number, shared: readonly SharedCheck[], decided: Outcome): DescriptorStatus[] {
  const decisions = new Map<unknown, Decision>(decided.checks.map((check, i) => [check, decided.decisions[i] as Decision]));
  const enforced = Array.from({ length: count }, () => ({ allowed: true, shown: [] as Decision[] }));
  for (const { check, places } of shared) {
    const decision = decisions.get(check);
    if (decision === undefined || check.shadow === true) continue;
    for (const place of places) {
      const own = enforced[place] as (typeof enforced)[0];
      if (!decision.allowed) own.allowed = false;
      if (check.rule.inHeaders) own.shown.push(decision);
    }
  }
  return enforced.map(({ allowed, shown }) => ({ allowed, decision: shown.length === 0 ? undefined : mostRestrictive(shown) }));
}

/** The most restrictive decision of each limit: the headers show a name once. */
function oncePerName(decisions: readonly Decision[]): readonly Decision[] {
  const byName = new Map<string, Decision>();
  for (const decision of decisions) {
    const known = byName.get(decision.name);
    byName.set(decision.name, known === undefined ? decision : mostRestrictive([known, decision]));
  }
  return [...byName.values()];
}
