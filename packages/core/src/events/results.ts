import type { Decision } from "../decide/decision.js";
import type { DecisionEvent, DecisionResult, RequestResult } from "./events.js";

/** The results of requests that pass. A request that several middlewares decided has the first of theirs. */
const passing: readonly unknown[] = ["failed-open", "fallback-allowed", "delayed", "allowed", "exempt", "skipped", "uncounted"];

/** Lower for a result that outweighs others of the same request; below 0 for a rejection. */
export function rankOf(result: RequestResult): number {
  return passing.indexOf(result);
}

/** Whether a request with this result was rejected. */
export function isRejection(result: RequestResult | DecisionResult): boolean {
  return result !== "shadow-limited" && rankOf(result) < 0;
}

/** What a decision means for its request, in a word: for metrics, dashboards and logs. */
export function resultOf({ decision, shadow }: Pick<DecisionEvent, "decision" | "shadow">): DecisionResult {
  const { allowed, degraded, degradedBy, blocked } = decision;
  if (degraded && degradedBy !== "fallback") return allowed || shadow ? "failed-open" : "failed-closed";
  if (!allowed) {
    if (shadow) return "shadow-limited";
    if (degraded) return "fallback-limited";
    return blocked === undefined ? "limited" : blocked.kind === "ban" ? "banned" : "blocked";
  }
  if (degraded) return "fallback-allowed";
  return decision.delayMs > 0 ? "delayed" : "allowed";
}

/** The decision that decided a request. A shadow rule never does, unless there are only shadow rules. */
export function decidingOf(
  checks: readonly { readonly shadow?: boolean }[],
  { allowed, decision, all }: { readonly allowed: boolean; readonly decision: Decision; readonly all: readonly Decision[] },
): Decision {
  if (!allowed) return decision;
  let deciding = decision;
  for (let i = 0; i < all.length; i++) {
    const other = all[i] as Decision;
    if (checks[i]?.shadow !== true && (other.degraded || (other.delayMs > 0 && !deciding.degraded))) deciding = other;
  }
  return deciding;
}
