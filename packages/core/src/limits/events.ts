import type { BreakerState } from "../stores/breaker.js";
import { reasonOf } from "../support/errors.js";
import { isPromise } from "../support/promises.js";
import { warnOnce } from "../support/warn.js";
import type { Decision } from "./decision.js";

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

/** A request was rejected for want of a key (`onMissingKey: "reject"`). */
export interface MissingKeyEvent {
  readonly type: "missing-key";
  readonly name: string;
}

/** Units were given back. */
export interface RefundEvent {
  readonly type: "refunded";
  readonly name: string;
  readonly key: string;
  readonly units: number;
  /** `undefined` where it was refunded by a receipt. */
  readonly decision: Decision | undefined;
}

/** The real cost of a request was told, and was another than what had been charged. */
export interface SettleEvent {
  readonly type: "settled";
  readonly name: string;
  readonly key: string;
  /** The real cost. */
  readonly cost: number;
  /** The units charged in addition, or below 0 those given back. */
  readonly units: number;
  /** `undefined` where it was settled by a receipt. */
  readonly decision: Decision | undefined;
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
  readonly name?: string;
  readonly key?: string;
  readonly error: unknown;
}

/** What a request has really cost could not be told or charged; the response is gone, so nobody else can be told. */
export interface SettleFailedEvent {
  readonly type: "settle-failed";
  readonly name?: string;
  readonly key?: string;
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

/**
 * A new version of the rules is in force, or, after a refusal, the one in force is what there is to read again; `version` is the
 * source's own name for it.
 */
export interface RulesReloadedEvent {
  readonly type: "rules-reloaded";
  readonly source: string;
  readonly version: string;
}

/** A new version of the rules was refused, or none could be read: the last good one stays in force. */
export interface RulesRefusedEvent {
  readonly type: "rules-refused";
  readonly source: string;
  readonly error: unknown;
}

export type RulesEvent = RulesReloadedEvent | RulesRefusedEvent;

/** A key has been rejected so often that it is turned away for a while. */
export interface BanEvent {
  readonly type: "banned";
  readonly name: string;
  readonly key: string;
  /** For how long. */
  readonly forMs: number;
  /** Whether the rule is only watched: then nobody is turned away. */
  readonly shadow: boolean;
}

/**
 * What a warning is about: two middlewares that count one request twice; a proxy that the framework was not told of; a middleware that
 * is made anew for each request; a key function that counts each IPv6 address as a client; a match function that answers nothing; a limit
 * of 0, which rejects every request; a rule that is only watched and fails.
 */
export type WarningCode =
  | "FLOODGATE_COUNTED_TWICE"
  | "FLOODGATE_MISSING_PROXY_SETTING"
  | "FLOODGATE_MADE_PER_REQUEST"
  | "FLOODGATE_KEY_PER_ADDRESS"
  | "FLOODGATE_MATCH_ANSWERS_NOTHING"
  | "FLOODGATE_LIMIT_OF_ZERO"
  | "FLOODGATE_WATCHED_RULE_FAILS";

/** A setting that is probably a mistake, told once: to whoever listens, else on the console. */
export interface WarningEvent {
  readonly type: "warning";
  readonly code: WarningCode;
  readonly message: string;
}

/** Everything that can be observed. It costs nothing when nobody listens. */
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

/** What it fails with, now or later, fails no request. */
export type EventListener = (event: FloodgateEvent) => void;

const listeners = new WeakMap<EventListener, EventListener>();

/** A listener as it is told; the same for the same. What it fails with, now or later, harms nobody else: the console is told once. */
export function listenerOf(onEvent: EventListener): EventListener;
export function listenerOf(onEvent: EventListener | undefined): EventListener | undefined;
export function listenerOf(onEvent: EventListener | undefined): EventListener | undefined {
  if (onEvent === undefined) return undefined;
  const known = listeners.get(onEvent);
  if (known !== undefined) return known;
  const listener = (event: FloodgateEvent): void => {
    try {
      const heard: unknown = onEvent(event);
      if (isPromise(heard)) heard.then(undefined, deaf);
    } catch (error) {
      deaf(error);
    }
  };
  listeners.set(onEvent, listener);
  listeners.set(listener, listener);
  return listener;
}

function deaf(error: unknown): void {
  warnOnce("onEvent", `a listener has failed, which harms no request, and is not told again: ${reasonOf(error).why}`);
}

/**
 * Tells of a probable mistake: the listener, else the console once in a process.
 * @param subject what the console is told of once: the code, or the code of one rule.
 */
export function tellWarning(onEvent: EventListener | undefined, code: WarningCode, message: string, subject: string = code): void {
  if (onEvent === undefined) warnOnce(code, message, subject);
  else onEvent({ type: "warning", code, message });
}

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
