import { reasonOf } from "../support/errors.js";
import { isPromise } from "../support/promises.js";
import { warnOnce } from "../support/warn.js";
import type { Decision } from "./decision.js";

/** The state of a circuit breaker. `closed`: the store is used. `open`: it is not. `half-open`: one request probes it. */
export type BreakerState = "closed" | "open" | "half-open";

/** One decision for a request under one limit. */
export interface DecisionEvent {
  /**
   * `allowed`; `limited` (rejected); `shadow-limited` (would have been rejected, but the limit is in shadow mode); `delayed` (allowed
   * after a wait); `degraded` (decided without the store).
   */
  readonly type: "allowed" | "limited" | "shadow-limited" | "delayed" | "degraded";
  readonly name: string;
  readonly key: string;
  readonly decision: Decision;
}

/** A request without a key was rejected (`onMissingKey: "reject"`). */
export interface MissingKeyEvent {
  readonly type: "missing-key";
  readonly name: string;
}

/** Units were refunded. */
export interface RefundEvent {
  readonly type: "refunded";
  readonly name: string;
  readonly key: string;
  readonly units: number;
  /** `undefined` if a receipt was used. */
  readonly decision: Decision | undefined;
}

/** A request was settled to a real cost that differs from the charged one. */
export interface SettleEvent {
  readonly type: "settled";
  readonly name: string;
  readonly key: string;
  /** The real cost. */
  readonly cost: number;
  /** The units charged in addition; negative if units were given back. */
  readonly units: number;
  /** `undefined` if a receipt was used. */
  readonly decision: Decision | undefined;
}

/** A full store evicted a key that had not expired. */
export interface EvictionEvent {
  readonly type: "evicted";
  readonly name: string;
  readonly key: string;
}

/** A refund by response status failed. The response has been sent, so this event is the only report. */
export interface RefundFailedEvent {
  readonly type: "refund-failed";
  readonly name?: string;
  readonly key?: string;
  readonly error: unknown;
}

/** A settlement failed. The response has been sent, so this event is the only report. */
export interface SettleFailedEvent {
  readonly type: "settle-failed";
  readonly name?: string;
  readonly key?: string;
  readonly error: unknown;
}

/** The store or its fallback failed or timed out. The decision is a separate `degraded` event. */
export interface StoreErrorEvent {
  readonly type: "store-error";
  readonly error: unknown;
}

/**
 * The circuit breaker of a store has opened (the store is not asked), is half-open (it is probed), or has closed. Each listener of the
 * store's limiters gets the event once.
 */
export interface BreakerEvent {
  readonly type: "breaker";
  readonly state: BreakerState;
}

/**
 * A new version of the rules is active; or the source is back at the active version after a refused one. `version` is the source's name
 * for it.
 */
export interface RulesReloadedEvent {
  readonly type: "rules-reloaded";
  readonly source: string;
  readonly version: string;
}

/** A new version of the rules was refused or could not be read. The last good one stays active. */
export interface RulesRefusedEvent {
  readonly type: "rules-refused";
  readonly source: string;
  readonly error: unknown;
}

export type RulesEvent = RulesReloadedEvent | RulesRefusedEvent;

/** A key was banned after repeated rejections. */
export interface BanEvent {
  readonly type: "banned";
  readonly name: string;
  readonly key: string;
  /** The length of the ban. */
  readonly forMs: number;
  /** Whether the rule is in shadow mode, so that the ban rejects nobody. */
  readonly shadow: boolean;
}

/**
 * The reason of a warning: two middlewares that count one request twice; a proxy without a proxy setting; a middleware that is made for
 * each request; a key function that counts each IPv6 address as a client; a match function that returns nothing; a limit of 0, which
 * rejects every request; a shadow rule that fails.
 */
export type WarningCode =
  | "FLOODGATE_COUNTED_TWICE"
  | "FLOODGATE_MISSING_PROXY_SETTING"
  | "FLOODGATE_MADE_PER_REQUEST"
  | "FLOODGATE_KEY_PER_ADDRESS"
  | "FLOODGATE_MATCH_ANSWERS_NOTHING"
  | "FLOODGATE_LIMIT_OF_ZERO"
  | "FLOODGATE_WATCHED_RULE_FAILS";

/** A probable mistake. It is reported once: to the listener, else on the console. */
export interface WarningEvent {
  readonly type: "warning";
  readonly code: WarningCode;
  readonly message: string;
}

/** Everything that can be observed. Events cost nothing without a listener. */
export type FloodgateEvent =
  | DecisionEvent
  | MissingKeyEvent
  | RefundEvent
  | SettleEvent
  | RefundFailedEvent
  | SettleFailedEvent
  | EvictionEvent
  | StoreErrorEvent
  | BreakerEvent
  | RulesEvent
  | BanEvent
  | WarningEvent;

/** A listener that throws or rejects does not fail the request. */
export type EventListener = (event: FloodgateEvent) => void;

const listeners = new WeakMap<EventListener, EventListener>();

/** Wraps a listener so that its errors fail no request; the first one is logged. The same listener returns the same wrapper. */
export function listenerOf(onEvent: EventListener): EventListener;
export function listenerOf(onEvent: EventListener | undefined): EventListener | undefined;
export function listenerOf(onEvent: EventListener | undefined): EventListener | undefined {
  if (onEvent === undefined) return undefined;
  const known = listeners.get(onEvent);
  if (known !== undefined) return known;
  const listener = (event: FloodgateEvent): void => {
    try {
      const handled: unknown = onEvent(event);
      if (isPromise(handled)) handled.then(undefined, listenerFailed);
    } catch (error) {
      listenerFailed(error);
    }
  };
  listeners.set(onEvent, listener);
  listeners.set(listener, listener);
  return listener;
}

function listenerFailed(error: unknown): void {
  warnOnce("onEvent", `a listener has failed. Requests are not affected, and further failures are not logged. ${reasonOf(error).why}`);
}

/**
 * Reports a probable mistake to the listener, else on the console.
 * @param subject what the console logs once per process: the code, or the code of one rule.
 */
export function emitWarning(onEvent: EventListener | undefined, code: WarningCode, message: string, subject: string = code): void {
  if (onEvent === undefined) warnOnce(code, message, subject);
  else onEvent({ type: "warning", code, message });
}

/** Emits the event of one decision. */
export function emitDecision(onEvent: EventListener, key: string, decision: Decision, shadow: boolean): void {
  onEvent({ type: eventType(decision, shadow), name: decision.name, key, decision });
}

/** Whether a decision has an event. A limit that allowed has no event if another limit rejected. */
export function hasEvent(decision: Decision, allowed: boolean): boolean {
  return allowed || !decision.allowed;
}

function eventType(decision: Decision, shadow: boolean): DecisionEvent["type"] {
  if (decision.degraded) return "degraded";
  if (!decision.allowed) return shadow ? "shadow-limited" : "limited";
  return decision.delayMs > 0 ? "delayed" : "allowed";
}
