import { decision } from "../algorithms/algorithm.js";
import { fixedWindow } from "../algorithms/fixed-window.js";
import { emptyView } from "../algorithms/state-view.js";
import { andThen, type Promised } from "../support/promises.js";
import { restated } from "./charge.js";
import type { Decision } from "./decision.js";
import { createLimit, type Limit } from "./limit.js";
import type { Check, Inspection, Store } from "./store.js";

/** Whether the limit of a check is 0, a kill switch: it rejects every request without asking the store. */
export function isZero({ limit }: { readonly limit: Limit }): boolean {
  return limit.policy.quota === 0;
}

export function hasZero(checks: readonly Check[]): boolean {
  for (const { limit } of checks) if (limit.policy.quota === 0) return true;
  return false;
}

/** The decision of a limit of 0. No wait helps. */
export function zeroDecision(limit: Limit, cost: number): Decision {
  return decision(limit, 0, false, 0, Number.POSITIVE_INFINITY, 0, 0, cost, Date.now());
}

/**
 * Decides several checks, some with a limit of 0. An enforced limit of 0 rejects the request, so the other limits are then decided without
 * being charged.
 */
export function consumeBesideZero(store: Store, checks: readonly Check[]): Decision[] | PromiseLike<Decision[]> {
  const rejects = checks.some((check) => isZero(check) && check.shadow !== true);
  const others = checks.filter((check) => !isZero(check)).map((check) => (rejects ? { ...check, look: true } : check));
  const decided = others.length > 0 ? store.consumeAll(others) : [];
  return andThen<Decision[], Decision[]>(decided, (decisions) => {
    const rest = decisions.values();
    return checks.map((check) => (isZero(check) ? zeroDecision(check.limit, check.cost) : (rest.next().value as Decision)));
  });
}

const unusedPolicy = fixedWindow({ limit: 1, window: "1ms" });

/**
 * Inspects a key under a limit of 0. It has no state, but a block belongs to the name and key, so the store is asked with another policy.
 * @param keyState asks the store about the key under a limit.
 */
export function inspectZero(limit: Limit, keyState: (limit: Limit) => Promised<Inspection>): Promised<Inspection> {
  return andThen<Inspection, Inspection>(keyState(createLimit(limit.name, unusedPolicy)), (seen) => {
    return { ...seen, decision: restated(zeroDecision(limit, 1), { atMs: seen.atMs }), state: emptyView };
  });
}
