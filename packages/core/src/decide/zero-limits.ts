import { emptyView } from "../algorithms/algorithm.js";
import { copyWith, MadeDecision } from "../algorithms/decision.js";
import { shareOf } from "../algorithms/registry.js";
import { andThen, type Promised } from "../support/promises.js";
import { type Check, type CombinedDecision, combine, createLimit, type Decision, type Limit } from "./decision.js";
import type { Guard } from "./guard.js";
import type { Inspection } from "./store.js";

// A limit of 0 is decided here. The store never sees it.

/** Whether a limit is 0, a kill switch: it rejects every request without asking the store. */
export function isZero({ policy }: Limit): boolean {
  return policy.quota === 0;
}

/** An enforced limit of 0 rejects a request by itself. Returns the checks that decide: these limits only, or all checks. */
export function decisiveChecks<C extends Check>(checks: readonly C[]): readonly C[] {
  return checks.some(({ limit, shadow }) => isZero(limit) && shadow !== true) ? checks.filter(({ limit }) => isZero(limit)) : checks;
}

export function zeroDecision(limit: Limit, cost: number): Decision {
  const never = Number.POSITIVE_INFINITY;
  return new MadeDecision(limit, cost, {
    allowed: false,
    remaining: 0,
    retryAfterMs: never,
    resetAfterMs: 0,
    delayMs: 0,
    atMs: Date.now(),
  });
}

/**
 * Decides a request as `guard.decide` does, if some of its limits may be 0. An enforced limit of 0 rejects the request, so the others are then
 * decided without being charged.
 */
export function decideWithZeros(checks: readonly Check[], guard: Guard): Promised<CombinedDecision> {
  if (!checks.some(({ limit }) => isZero(limit))) return guard.decide(checks);
  const isRejected = checks.some(({ limit, shadow }) => isZero(limit) && shadow !== true);
  const others = checks.filter(({ limit }) => !isZero(limit)).map((check) => (isRejected ? { ...check, dryRun: true } : check));
  const decided = others.length > 0 ? guard.decide(others) : undefined;
  return andThen<CombinedDecision | undefined, CombinedDecision>(decided, (made) => {
    let next = 0;
    const all = checks.map(({ limit, cost }) => (isZero(limit) ? zeroDecision(limit, cost) : (made?.all[next++] as Decision)));
    return combine(checks, all);
  });
}

/** What a request of cost 1 would get under a limit that may be 0. */
export function peekAt(guard: Guard, limit: Limit, key: string): Promised<Decision> {
  return isZero(limit) ? zeroDecision(limit, 1) : guard.peek(limit, key);
}

/** A limit of 0 has no state, but its key may be blocked. So the store is asked under a limit of 1, the least that `shareOf` makes. */
export function keyStateAt(guard: Guard, limit: Limit, key: string): Promised<Inspection> {
  if (!isZero(limit)) return guard.keyState(limit, key);
  return andThen<Inspection, Inspection>(guard.keyState(createLimit(limit.name, shareOf(limit.policy, 1)), key), (inspection) => {
    return { ...inspection, decision: copyWith(zeroDecision(limit, 1), { atMs: inspection.atMs }), state: emptyView };
  });
}
