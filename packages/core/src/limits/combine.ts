import type { Check } from "../stores/store.js";
import { passesAll } from "./all-or-nothing.js";
import { restated } from "./charge.js";
import { type CombinedDecision, type Decision, mostRestrictive } from "./decision.js";

/**
 * What several decisions of one atomic step come to: shadow ones reject nothing and are reported only where there is no
 * other. Of a rejected whole nothing was charged, so nobody waits for a turn and nothing can be given back.
 */
export function combine(checks: readonly Check[], decisions: readonly Decision[]): CombinedDecision {
  const enforced = decisions.filter((_, i) => checks[i]?.shadow !== true);
  const allowed = passesAll(checks, decisions);
  if (allowed) return { allowed, decision: mostRestrictive(enforced.length > 0 ? enforced : decisions), all: decisions };
  const all = decisions.map((decision) => (decision.allowed && decision.delayMs > 0 ? restated(decision, { delayMs: 0 }) : decision));
  return { allowed, decision: mostRestrictive(all.filter((_, i) => checks[i]?.shadow !== true)), all };
}
