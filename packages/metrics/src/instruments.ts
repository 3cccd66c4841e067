/**
 * `counter`: a sum that only grows. `histogram`: a distribution. `sum`: a number now that adds up over processes. `gauge`: a number now
 * that does not, such as a limit.
 */
export type InstrumentKind = "counter" | "histogram" | "sum" | "gauge";

/**
 * The attributes of a measurement. None of them is made of a request: `rule` is a name from the app's configuration, `server` a part of a
 * store, such as a server of a Redis Cluster; all others are one of a few words.
 */
export type AttributeName = "rule" | "result" | "state" | "code" | "error.type" | "server" | "version";

/** One metric. */
export interface Instrument {
  /** The name in OpenTelemetry: without a unit. `prometheusName` makes the one of Prometheus. */
  readonly name: string;
  readonly kind: InstrumentKind;
  /** In UCUM: `s` for seconds, or what is counted, in braces and in the singular. */
  readonly unit: string;
  readonly description: string;
  readonly attributes: readonly AttributeName[];
  /** The upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

/** From 10 µs, which a decision in memory takes, to five seconds. 110 ms is just above the default `timeoutMs`. */
const decisionSeconds: readonly number[] = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.11, 0.25, 0.5, 1, 2.5, 5,
];

const delaySeconds: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const batchSizes: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** The metrics that events add to. */
export type CounterId =
  | "requests"
  | "outcomes"
  | "nearLimit"
  | "unitsRequested"
  | "unitsCharged"
  | "unitsRefunded"
  | "unitsSettled"
  | "refunds"
  | "settlements"
  | "bans"
  | "keyChanges"
  | "slotsLost"
  | "leases"
  | "unitsLeased"
  | "evictions"
  | "storeErrors"
  | "breakerTransitions"
  | "denyCacheHits"
  | "rulesReloads"
  | "warnings";

/** The metrics that events record values in. */
export type HistogramId = "timeInQueue" | "decisionDuration" | "roundTripDuration" | "roundTripDecisions";

/** The metrics that are read when metrics are collected. */
export type NowId = "limit" | "window" | "shadow" | "slotsHeld" | "keys" | "breakers" | "rulesVersions" | "rulesRefused" | "rulesLoaded";

export type InstrumentId = CounterId | HistogramId | NowId;

const instrument =
  (kind: InstrumentKind) =>
  (name: string, unit: string, attributes: readonly AttributeName[], description: string, buckets?: readonly number[]): Instrument => ({
    name: `floodgate.rate_limiting.${name}`,
    kind,
    unit,
    description,
    attributes,
    ...(buckets !== undefined && { buckets }),
  });
const counter = instrument("counter");
const histogram = instrument("histogram");
const sum = instrument("sum");
const gauge = instrument("gauge");

/** All metrics. The exporters only translate this table, so they have the same metrics. */
export const instruments: Readonly<Record<InstrumentId, Instrument>> = {
  outcomes: counter(
    "request.outcomes",
    "{request}",
    ["rule", "result"],
    "Requests, each once, by the rule that decided and by result. Passed: allowed, delayed, failed-open, fallback-allowed; not counted: exempt, skipped (by the option skip), uncounted (no rule counts it). Rejected: limited, blocked, banned, missing-key, ambiguous-path, failed-closed, fallback-limited.",
  ),
  requests: counter(
    "requests",
    "{request}",
    ["rule", "result"],
    "Decisions: requests under each rule that they meet, by result: allowed, delayed (allowed after a wait), limited (rejected, the limit is used up), blocked and banned (rejected whatever the limit says), shadow-limited (a rule in shadow mode would have rejected), exempt (not counted), missing-key (rejected for lack of a key), skipped (not counted for lack of a key). Without the store: failed-open (allowed), failed-closed (rejected), fallback-allowed, fallback-limited (rejected).",
  ),
  nearLimit: counter("near_limit", "{request}", ["rule"], "Allowed requests that left their key under 20 % of the limit."),
  unitsRequested: counter(
    "units.requested",
    "{unit}",
    ["rule", "result"],
    "Units that requests asked for: their costs, by result of the request.",
  ),
  unitsCharged: counter(
    "units.charged",
    "{unit}",
    ["rule"],
    "Units that allowed requests were charged when they were decided, and usage that limiter.charge recorded.",
  ),
  unitsRefunded: counter("units.refunded", "{unit}", ["rule"], "Units that refunds gave back."),
  unitsSettled: counter(
    "units.settled",
    "{unit}",
    ["rule", "result"],
    "Units that settlements charged in addition (result charged) or gave back (result refunded).",
  ),
  refunds: counter("refunds", "{refund}", ["rule", "result"], "Refunds, by result: succeeded or failed."),
  settlements: counter(
    "settlements",
    "{settlement}",
    ["rule", "result"],
    "Settlements that changed a charge, by result: succeeded or failed.",
  ),
  timeInQueue: histogram(
    "request.time_in_queue",
    "s",
    ["rule"],
    "How long delayed requests had to wait in the queue of a leaky bucket.",
    delaySeconds,
  ),
  decisionDuration: histogram(
    "decision.duration",
    "s",
    [],
    "How long the store took for a decision, one value for each rule of a request. 0 for a store in this process, such as memory, which is not timed.",
    decisionSeconds,
  ),
  bans: counter(
    "bans",
    "{ban}",
    ["rule", "result"],
    "Keys banned after repeated rejections, by result: enforced, or shadow (the rule is in shadow mode, so nobody is rejected).",
  ),
  keyChanges: counter(
    "key_changes",
    "{change}",
    ["rule", "result"],
    "Keys that somebody changed in this process, by result: blocked, unblocked, reset, granted.",
  ),
  limit: gauge(
    "limit",
    "{unit}",
    ["rule"],
    "The largest cost that could ever pass: limit, capacity or burst of the rule. Of a rule with plans: that of keys without a plan.",
  ),
  window: gauge(
    "window",
    "s",
    ["rule"],
    "The time in which a full limit comes back: the window, or the time that a bucket takes from empty to full.",
  ),
  shadow: gauge("shadow", "{rule}", ["rule"], "1 if the rule is in shadow mode, which rejects nothing; 0 if it is enforced."),
  slotsHeld: sum("slots.held", "{slot}", ["rule"], "Slots that requests in flight in this process hold now (concurrency)."),
  slotsLost: counter(
    "slots.lost",
    "{slot}",
    ["rule", "result"],
    "Slots that came back while their request still ran, because the process was stopped or could not reach the store for longer than hold, by result: retaken (there was room, so the request has a slot again), or beside (the limit was full, so the request runs beside it).",
  ),
  leases: counter(
    "leases",
    "{lease}",
    ["rule", "result"],
    "Leases of busy keys of a Redis store, by result: begun, ended. Those begun and not ended are in use.",
  ),
  unitsLeased: counter(
    "units.leased",
    "{unit}",
    ["rule", "result"],
    "Units of leases, by result: charged (in Redis, ahead of the requests), spent, returned (unused, counted with those spent when the lease ends). Those charged and neither spent nor returned are held.",
  ),
  keys: sum("keys", "{key}", [], "Keys that the memory stores hold now."),
  evictions: counter(
    "evictions",
    "{eviction}",
    ["rule"],
    "Keys that a full memory store evicted before they had expired. Each of them starts anew, so the limit was not enforced for it.",
  ),
  storeErrors: counter(
    "store.errors",
    "{error}",
    ["error.type"],
    "Failures of stores and of their fallbacks, by code of the error; other if it has none.",
  ),
  breakers: sum(
    "store.breakers",
    "{breaker}",
    ["state", "server"],
    "Circuit breakers of stores that are in a state now: closed (the store is used), open (it is not), half-open (it is probed). A Redis Cluster has one for each server.",
  ),
  breakerTransitions: counter("store.breaker_transitions", "{transition}", ["state", "server"], "Changes of circuit breakers to a state."),
  denyCacheHits: counter(
    "deny_cache.hits",
    "{hit}",
    ["rule"],
    "Rejections that were answered in this process, without a round trip to the store.",
  ),
  roundTripDuration: histogram(
    "store.round_trip.duration",
    "s",
    ["result"],
    "How long a command to Redis took, until its reply (result ok) or its failure (result error).",
    decisionSeconds,
  ),
  roundTripDecisions: histogram(
    "store.round_trip.decisions",
    "{decision}",
    [],
    "How many decisions, refunds and other steps travelled together in one command to Redis.",
    batchSizes,
  ),
  rulesVersions: sum("rules.versions", "{source}", ["version"], "Live sources of rules in use, by their active version."),
  rulesRefused: sum(
    "rules.refused",
    "{source}",
    [],
    "Live sources of rules whose newest version is refused: the last good one stays active.",
  ),
  rulesLoaded: gauge(
    "rules.loaded_timestamp",
    "s",
    [],
    "When this process last read its live rules and found them good, in seconds since 1970; the oldest of several sources.",
  ),
  rulesReloads: counter(
    "rules.reloads",
    "{reload}",
    ["result"],
    "New versions of live rules, by result: accepted, or refused (invalid, or could not be read).",
  ),
  warnings: counter("warnings", "{warning}", ["code"], "Probable mistakes in how the app uses Floodgate, by code of the warning."),
};

const ids = Object.keys(instruments) as InstrumentId[];
export const counterIds: readonly CounterId[] = ids.filter((id): id is CounterId => instruments[id].kind === "counter");
export const histogramIds: readonly HistogramId[] = ids.filter((id): id is HistogramId => instruments[id].kind === "histogram");
export const nowIds: readonly NowId[] = ids.filter((id): id is NowId => ["sum", "gauge"].includes(instruments[id].kind));

/**
 * The name in Prometheus: underscores, the base unit at the end, and `_total` for a counter. An OpenTelemetry pipeline that ends in
 * Prometheus makes the same name.
 */
export function prometheusName({ name, kind, unit }: Instrument): string {
  return `${name.replaceAll(".", "_")}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`;
}

/** The name of an attribute's label in Prometheus. */
export function prometheusLabel(attribute: AttributeName): string {
  return attribute.replaceAll(".", "_");
}
