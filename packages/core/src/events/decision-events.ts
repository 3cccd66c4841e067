import { hasCharge } from "../algorithms/decision.js";
import type { CombinedDecision, Decision } from "../decide/decision.js";
import type { Mode } from "../decide/store.js";
import { steadyMs } from "../support/runtime.js";
import type { DecisionEvent, DecisionResult, EventListener, RequestEvent, RequestResult } from "./events.js";
import { hearsAllowed } from "./listeners.js";

/** The request of the newest request event. Module state costs less than a field of each event. */
let newestRequest: RequestPass | undefined;

/** The request of the request event that a listener is being called with; undefined if no middleware decided it. */
export function emittedRequest(): RequestPass | undefined {
  return newestRequest;
}

/** A request as a middleware sees it: with the last event of the request. */
export interface RequestPass {
  readonly previous: RequestPass | undefined;
  emitted: RequestEvent | undefined;
}

/** When the store is asked, by `steadyMs`. 0 for a store in this process: to read the clock twice would take as long as its decision. */
export function timeOfAsking({ mode }: { readonly mode: Mode }): number {
  return mode === "sync" ? 0 : steadyMs();
}

/**
 * Emits the events of decisions that were made in one step, and then of the request. A limit that allowed has no event if another one
 * rejected: the request did not pass it.
 * @param listener undefined if nobody listens.
 * @param askedMs of `timeOfAsking`.
 */
export function emitDecisions(
  listener: EventListener | undefined,
  checks: readonly { readonly key: string; readonly shadow?: boolean }[],
  whole: CombinedDecision,
  askedMs: number,
  request?: RequestPass,
): void {
  if (listener === undefined) return;
  if (emitLimitEvents(listener, checks, whole, askedMs)) emitRequestDecided(listener, checks, whole, request);
}

/** Emits one event for each limit, without the request's. Returns false if the listener ignores them. */
export function emitLimitEvents(
  listener: EventListener,
  checks: readonly { readonly key: string; readonly shadow?: boolean }[],
  { allowed, all }: Pick<CombinedDecision, "allowed" | "all">,
  askedMs: number,
): boolean {
  if (allowed && !hearsAllowed(listener) && all.every((decision) => decision.allowed)) return false;
  const storeMs = askedMs === 0 ? 0 : steadyMs() - askedMs;
  for (let i = 0; i < checks.length; i++) {
    const decision = all[i] as Decision;
    const { key, shadow = false } = checks[i] as (typeof checks)[number];
    if (!allowed && decision.allowed) continue;
    const charged = hasCharge(decision) ? decision.cost : 0;
    listener({ type: eventType(decision, shadow), name: decision.name, key, decision, shadow, charged, storeMs });
  }
  return true;
}

/** Emits the event of a request that limits decided. */
export function emitRequestDecided(
  listener: EventListener | undefined,
  checks: readonly { readonly shadow?: boolean }[],
  whole: CombinedDecision,
  request?: RequestPass,
): void {
  const decision = decidingOf(checks, whole);
  const isShadow = whole.allowed && checks.every(({ shadow }) => shadow === true);
  emitRequest(listener, isShadow ? "allowed" : (resultOf({ decision, shadow: false }) as RequestResult), decision, request);
}

/** Emits the events of rules that did not count a request. */
export function emitNotCounted(
  listener: EventListener | undefined,
  rules: readonly { readonly name: string }[],
  asked: readonly unknown[],
): void {
  rules.forEach(({ name }, i) => {
    const rejected = asked[i] === "missing-key";
    if (asked[i] === "exempt") listener?.({ type: "exempt", name });
    else if (rejected || asked[i] === "no-key") listener?.({ type: "missing-key", name, rejected });
  });
}

/**
 * Emits the event of a request, unless an earlier middleware has said as much.
 * @param decided the decision. If no limit decided, the name of the rule that rejected the request, if any.
 */
export function emitRequest(
  listener: EventListener | undefined,
  result: RequestResult,
  decided: Decision | string | undefined,
  request: RequestPass | undefined,
): void {
  if (listener === undefined) return;
  const rank = rankOf(result);
  const rejected = rank < 0;
  if (!rejected && !hearsAllowed(listener)) return;
  let earlier = request?.previous;
  while (earlier !== undefined && earlier.emitted === undefined) earlier = earlier.previous;
  const replaces = earlier?.emitted;
  if (replaces !== undefined && rankOf(replaces.result) <= rank) return;
  const decision = typeof decided === "object" ? decided : undefined;
  const name = decision?.name ?? (decided as string | undefined);
  const event: RequestEvent = { type: "request", result, rejected, name, decision, replaces };
  newestRequest = request;
  if (request !== undefined) request.emitted = event;
  listener(event);
}

function eventType(decision: Decision, shadow: boolean): DecisionEvent["type"] {
  if (decision.degraded) return "degraded";
  if (!decision.allowed) return shadow ? "shadow-limited" : "limited";
  return decision.delayMs > 0 ? "delayed" : "allowed";
}

/** The results of requests that pass. A request that several middlewares decided has the first of theirs. */
const passing: readonly unknown[] = ["failed-open", "fallback-allowed", "delayed", "allowed", "exempt", "skipped", "uncounted"];

/** Lower for a result that outweighs others of the same request; below 0 for a rejection. */
function rankOf(result: RequestResult): number {
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

/** The decision that decided a request: the longest delay, else the most restrictive. A shadow rule never does, unless there are only shadow rules. */
export function decidingOf(
  checks: readonly { readonly shadow?: boolean }[],
  { allowed, decision, all }: { readonly allowed: boolean; readonly decision: Decision; readonly all: readonly Decision[] },
): Decision {
  if (!allowed) return decision;
  let deciding = decision;
  for (let i = 0; i < all.length; i++) {
    const other = all[i] as Decision;
    if (checks[i]?.shadow !== true && other.delayMs > deciding.delayMs) deciding = other;
  }
  return deciding;
}
