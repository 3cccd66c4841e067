import type { Decision } from "./decision.js";
import type { BreakerState } from "./failure/breaker.js";

/** What happened to one request under one limit. */
export interface DecisionEvent {
  /**
   * `allowed`, `limited` (rejected), `shadow-limited` (would have been, but the limit is only watched), `delayed` (allowed,
   * after a wait), `degraded` (decided without the store).
   */
  readonly type: "allowed" | "limited" | "shadow-limited" | "delayed" | "degraded";
  readonly name: string;
  readonly key: string;
  readonly decision: Decision;
}

/** Units were given back. */
export interface RefundEvent {
  readonly type: "refunded";
  readonly name: string;
  readonly key: string;
  readonly units: number;
  readonly decision: Decision;
}

/** A store that was full forgot a key that still had something to remember. */
export interface EvictionEvent {
  readonly type: "evicted";
  readonly name: string;
  readonly key: string;
}

/** A refund by response status failed; the response is gone, so nobody else can be told. */
export interface RefundFailedEvent {
  readonly type: "refund-failed";
  readonly error: unknown;
}

/** The store (or its fallback) has failed, or has not answered in time; the decision is another event, `degraded`. */
export interface StoreErrorEvent {
  readonly type: "store-error";
  readonly error: unknown;
}

/**
 * The breaker of a store has opened (it is not asked), tries it (`half-open`), or has closed again. All who listen to a store's
 * limiters are told, each once.
 */
export interface BreakerEvent {
  readonly type: "breaker";
  readonly state: BreakerState;
}

/** A setting that is probably a mistake, told once: to whoever listens, else on the console. */
export interface WarningEvent {
  readonly type: "warning";
  readonly code: "FLOODGATE_MISSING_PROXY_SETTING";
  readonly message: string;
}

/** Everything that can be observed. It costs nothing when nobody listens. */
export type FloodgateEvent =
  | DecisionEvent
  | RefundEvent
  | RefundFailedEvent
  | EvictionEvent
  | StoreErrorEvent
  | BreakerEvent
  | WarningEvent;

export type EventListener = (event: FloodgateEvent) => void;

/** Tells of one decision. */
export function tell(onEvent: EventListener, key: string, decision: Decision, shadow: boolean): void {
  onEvent({ type: eventType(decision, shadow), name: decision.name, key, decision });
}

/** Whether there is something to tell: of a rejected whole, a limit that would have allowed has neither allowed nor limited. */
export function isTold(decision: Decision, allowed: boolean): boolean {
  return allowed || !decision.allowed;
}

function eventType(decision: Decision, shadow: boolean): DecisionEvent["type"] {
  if (decision.degraded) return "degraded";
  if (!decision.allowed) return shadow ? "shadow-limited" : "limited";
  return decision.delayMs > 0 ? "delayed" : "allowed";
}
