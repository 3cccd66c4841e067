import { type Decision, mostRestrictive } from "../decide/decision.js";
import type { Descriptor } from "../requests/descriptor.js";
import type { Meeting } from "../requests/request-context.js";
import type { Asked, CompiledRule, RuleCheck } from "../rules/compiled-rule.js";
import type { DescriptorIndex } from "../rules/descriptor-index.js";
import { abandon, isPromise, type Promised } from "../support/promises.js";
import type { Outcome } from "./outcome.js";

/** What became of one descriptor of a request to Envoy's rate limit service. */
export interface DescriptorStatus {
  /** Whether all enforced limits of this descriptor allow it. The whole request passes only if all descriptors do. */
  readonly allowed: boolean;
  /** The most restrictive decision of its enforced limits; undefined if none applied. */
  readonly decision: Decision | undefined;
}

/** The result for all descriptors of one request: all were charged, or none was. */
export interface DescriptorsOutcome {
  readonly outcome: Outcome;
  /** One for each descriptor, in order. */
  readonly statuses: readonly DescriptorStatus[];
}

/** What one rule asks for one descriptor. */
export interface DescriptorAsk<Req> {
  /** The place of the descriptor in the request. */
  readonly place: number;
  readonly hits: number;
  readonly rule: CompiledRule<Req>;
  readonly asked: Asked<Req>;
}

/** What the rules that match ask for each descriptor. */
export function askDescriptors<Req>(
  meetings: readonly Meeting<Req>[],
  index: DescriptorIndex<CompiledRule<Req>>,
): Promised<readonly DescriptorAsk<Req>[]> {
  const places: (readonly [place: number, hits: number, rule: CompiledRule<Req>])[] = [];
  const asked: Promised<Asked<Req>>[] = [];
  try {
    meetings.forEach((meeting, place) => {
      const descriptor = meeting.descriptor as Descriptor;
      for (const rule of index.find(descriptor)) {
        places.push([place, descriptor.hits, rule]);
        asked.push(rule.ask(meeting));
      }
    });
  } catch (error) {
    abandon(asked);
    throw error;
  }
  const asks = (answers: readonly Asked<Req>[]): DescriptorAsk<Req>[] =>
    places.map(([place, hits, rule], i) => ({ place, hits, rule, asked: answers[i] as Asked<Req> }));
  return asked.some(isPromise) ? Promise.all(asked).then(asks) : asks(asked as Asked<Req>[]);
}

/** One check for all descriptors that count under the same limit and key. */
export interface SharedCheck<Req> {
  readonly check: RuleCheck<Req>;
  readonly places: ReadonlySet<number>;
}

/** The checks of all descriptors, in order. A store takes each limit and key once, so their costs are added. */
export function sharedChecks<Req>(asks: readonly DescriptorAsk<Req>[]): SharedCheck<Req>[] {
  const byCount = new Map<string, { check: RuleCheck<Req>; places: Set<number> }>();
  for (const { place, hits, asked } of asks) {
    if (typeof asked === "string") continue;
    const check = hits === 0 ? { ...asked, look: true } : { ...asked, cost: safe(asked.cost * hits) };
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

function bothOf<Req>(a: RuleCheck<Req>, b: RuleCheck<Req>): RuleCheck<Req> {
  // Plans may differ: the smaller limit holds for both.
  const limit = b.limit.policy.quota < a.limit.policy.quota ? b.limit : a.limit;
  if (a.look === true && b.look === true) return { ...a, limit };
  return { ...(a.look === true ? b : a), limit, cost: a.look === true ? b.cost : b.look === true ? a.cost : safe(a.cost + b.cost) };
}

function safe(cost: number): number {
  return Math.min(cost, Number.MAX_SAFE_INTEGER);
}

/** The status of each of `count` descriptors. A limit of 0 may have rejected the request before other checks were decided. */
export function statusesOf<Req>(count: number, shared: readonly SharedCheck<Req>[], decided: Outcome): DescriptorStatus[] {
  const decisions = new Map<unknown, Decision>(decided.checks.map((check, i) => [check, decided.decisions[i] as Decision]));
  const enforced = Array.from({ length: count }, (): Decision[] => []);
  for (const { check, places } of shared) {
    const decision = decisions.get(check);
    if (decision !== undefined && check.shadow !== true) for (const place of places) enforced[place]?.push(decision);
  }
  return enforced.map((own) => {
    const decision = own.length === 0 ? undefined : mostRestrictive(own);
    return { allowed: decision?.allowed !== false, decision };
  });
}

/** The most restrictive decision of each limit: the headers show a name once. */
export function oncePerName(decisions: readonly Decision[]): readonly Decision[] {
  const byName = new Map<string, Decision>();
  for (const decision of decisions) {
    const known = byName.get(decision.name);
    byName.set(decision.name, known === undefined ? decision : mostRestrictive([known, decision]));
  }
  return [...byName.values()];
}
