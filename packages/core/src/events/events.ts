import type { Decision } from "../decide/decision.js";

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
  /** Whether the limit is in shadow mode. */
  readonly shadow: boolean;
  /** The units that the request was charged: its cost, or 0 if it was rejected or could not be counted. */
  readonly charged: number;
  /**
   * How long the store took, in milliseconds with fractions. 0 for a store in this process, which is not timed. Limits that are decided in one
   * step have the same time.
   */
  readonly storeMs: number;
}

/**
 * What a decision means for its request. `limited`: the limit is used up. `blocked`, `banned`: the key is turned away, whatever its limit says.
 * `shadow-limited`: a shadow rule would have rejected it. Without the store: `failed-open`, `failed-closed` (`onStoreError: "allow"` and
 * `"deny"`), `fallback-allowed`, `fallback-limited`.
 */
export type DecisionResult =
  | "allowed"
  | "delayed"
  | "limited"
  | "blocked"
  | "banned"
  | "shadow-limited"
  | "failed-open"
  | "failed-closed"
  | "fallback-allowed"
  | "fallback-limited";

/**
 * What became of a request. Beside the results of decisions: `missing-key` and `ambiguous-path` (rejected), `exempt`, `skipped` (by the
 * option `skip`), and `uncounted`: no rule counted it.
 */
export type RequestResult =
  | Exclude<DecisionResult, "shadow-limited">
  | "missing-key"
  | "ambiguous-path"
  | "exempt"
  | "skipped"
  | "uncounted";

/**
 * A request, once, whatever the number of rules. If it passes several middlewares, a later one has an event only if it changes the result.
 * Calls of `consume`, `consumeAll`, `check` and `enforce` are requests too.
 */
export interface RequestEvent {
  readonly type: "request";
  readonly result: RequestResult;
  readonly rejected: boolean;
  /** The rule that decided: the one that holds the request longest, else the most restrictive one. Undefined if no rule did. */
  readonly name: string | undefined;
  /** The decision of that rule. */
  readonly decision: Decision | undefined;
  /** The event of an earlier middleware that this one corrects: the same request. */
  readonly replaces: RequestEvent | undefined;
}

/** A limit did not count a request, because its client or its key is exempt. */
export interface ExemptEvent {
  readonly type: "exempt";
  readonly name: string;
}

/** A request had no key: it was rejected (`onMissingKey: "reject"`), or this limit did not count it (`"skip"`). */
export interface MissingKeyEvent {
  readonly type: "missing-key";
  readonly name: string;
  readonly rejected: boolean;
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

/** Usage that had happened was recorded: `limiter.charge`. */
export interface ChargeEvent {
  readonly type: "charged";
  readonly name: string;
  readonly key: string;
  readonly cost: number;
  /** The units that were charged. */
  readonly units: number;
}

/**
 * The slot of a running request came back too early: this process was stopped for longer than the policy's `hold`, or could not reach the
 * store. `counted`: there was room, so the request has a slot again. If not, it runs beside the limit.
 */
export interface SlotLostEvent {
  readonly type: "slot-lost";
  readonly name: string;
  readonly key: string;
  readonly decision: Decision;
  readonly counted: boolean;
}

/**
 * A process has leased units of a busy key: Redis has charged them, and the process spends them without asking. Or it has ended a lease, and
 * gives back what it has not spent.
 */
export interface LeaseEvent {
  readonly type: "lease";
  readonly name: string;
  readonly key: string;
  /** The units of the lease. */
  readonly units: number;
  /** The units that were spent when the lease ended. Undefined when it begins. */
  readonly spent: number | undefined;
}

/** A full store evicted a key that had not expired. */
export interface EvictionEvent {
  readonly type: "evicted";
  readonly name: string;
  readonly key: string;
}

/** A refund by response status or a settlement failed. The response has been sent, so this event is the only report. */
export interface ChangeFailedEvent {
  readonly type: "refund-failed" | "settle-failed";
  readonly name?: string;
  readonly key?: string;
  readonly error: unknown;
}

/** A store in Redis has sent a command and got its reply, or a fault. Decisions that wait at the same moment share a command. */
export interface RoundTripEvent {
  readonly type: "round-trip";
  /** How many decisions and other steps the command carried. */
  readonly steps: number;
  /** From sending to the reply, in milliseconds with fractions. */
  readonly ms: number;
  readonly ok: boolean;
}

/** A store in Redis rejected a request in this process, without a round trip. The decision is a separate event. */
export interface DenyCacheEvent {
  readonly type: "deny-cache-hit";
  readonly name: string;
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
  /** The part of the store that the breaker is for, such as one server of a Cluster. Undefined for a store that has one breaker. */
  readonly part?: string;
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

/** A key of a rule has another plan until a time; or its grant has ended by hand: then `plan` is undefined. Only the process that did it has the event. */
export interface GrantEvent {
  readonly type: "granted";
  readonly name: string;
  readonly key: string;
  readonly plan: string | undefined;
  readonly until: string | undefined;
  /** Who did it: the option `by` of the call. */
  readonly by: string | undefined;
}

export type RulesEvent = RulesReloadedEvent | RulesRefusedEvent | GrantEvent;

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

/** A key was blocked, unblocked or reset by hand. Only the process that did it has the event. */
export type KeyChangeEvent = {
  readonly name: string;
  readonly key: string;
  /** Who did it: the option `by` of the call. */
  readonly by: string | undefined;
} & ({ readonly type: "blocked" /** The length of the block. */; readonly forMs: number } | { readonly type: "unblocked" | "reset" });

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
  | "FLOODGATE_DESCRIPTORS_ONLY"
  | "FLOODGATE_SHADOW_RULE_FAILS";

/** A probable mistake. It is reported once: to the listener, else on the console. */
export interface WarningEvent {
  readonly type: "warning";
  readonly code: WarningCode;
  readonly message: string;
}

/** Everything that can be observed. Events cost nothing without a listener. */
export type FloodgateEvent =
  | DecisionEvent
  | RequestEvent
  | ExemptEvent
  | MissingKeyEvent
  | RefundEvent
  | SettleEvent
  | ChargeEvent
  | ChangeFailedEvent
  | SlotLostEvent
  | LeaseEvent
  | EvictionEvent
  | RoundTripEvent
  | DenyCacheEvent
  | StoreErrorEvent
  | BreakerEvent
  | RulesEvent
  | BanEvent
  | KeyChangeEvent
  | WarningEvent;

/** A listener that throws or rejects does not fail the request. */
export type EventListener = (event: FloodgateEvent) => void;
