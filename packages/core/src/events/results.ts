import type { Decision } from "../decide/decision.js";
import type { DecisionEvent, DecisionResult, RequestResult } from "./events.js";

const rejections: ReadonlySet<RequestResult> = new Set<RequestResult>([
  "limited",
  "blocked",
  "banned",
  "failed-closed",
  "fallback-limited",
  "missing-key",
  "ambiguous-path",
]);

/** Whether a request with this result was rejected. */
export function isRejection(result: RequestResult | DecisionResult): boolean {
  return rejections.has(result as RequestResult);
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
