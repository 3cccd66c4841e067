/**
 * `counter`: a sum that only grows. `histogram`: a distribution. `sum`: a number now that adds up over processes. `gauge`: a number now
 * that does not, such as a limit.
 */
export type InstrumentKind = "counter" | "histogram" | "sum" | "gauge";

/**
 * The attributes of a measurement. None of them is made of a request: `rule` is a name from the app's configuration, all others are one of
 * a few words.
 */
export type AttributeName = "rule" | "result" | "state" | "code" | "error.type" | "version";

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

/** From 10 µs, which a decision in memory takes, to five seconds. */
const decisionSeconds: readonly number[] = [
  0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];

const delaySeconds: readonly number[] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const batchSizes: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** The metrics that events add to. */
export type CounterId =
  | "requests"
  | "nearLimit"
  | "unitsRequested"
  | "unitsCharged"
  | "unitsRefunded"
  | "unitsSettled"
  | "refunds"
  | "settlements"
  | "bans"
  | "evictions"
  | "storeErrors"
  | "breakerTransitions"
  | "denyCacheHits"
  | "rulesReloads"
  | "warnings";

/** The metrics that events record values in. */
export type HistogramId = "timeInQueue" | "decisionDuration" | "roundTripDuration" | "roundTripDecisions";

/** The metrics that are read when metrics are collected. */
export type NowId = "limit" | "window" | "shadow" | "keys" | "breakers" | "rulesVersions" | "rulesRefused";

export type InstrumentId = CounterId | HistogramId | NowId;

/** All metrics. The exporters only translate this table, so they have the same metrics. */
export const instruments: Readonly<Record<InstrumentId, Instrument>> = {
  requests: {
    name: "floodgate.rate_limiting.requests",
    kind: "counter",
    unit: "{request}",
    description:
      "Requests under a rule, by result: allowed, delayed (allowed after a wait), limited (rejected), shadow-limited (a rule in shadow mode would have rejected), degraded (decided without the store), exempt (not counted), missing-key (rejected for lack of a key), skipped (not counted for lack of a key).",
    attributes: ["rule", "result"],
  },
  nearLimit: {
    name: "floodgate.rate_limiting.near_limit",
    kind: "counter",
    unit: "{request}",
    description: "Allowed requests that left their key under 20 % of the limit.",
    attributes: ["rule"],
  },
  unitsRequested: {
    name: "floodgate.rate_limiting.units.requested",
    kind: "counter",
    unit: "{unit}",
    description: "Units that requests asked for: their costs, by result of the request.",
    attributes: ["rule", "result"],
  },
  unitsCharged: {
    name: "floodgate.rate_limiting.units.charged",
    kind: "counter",
    unit: "{unit}",
    description: "Units that allowed requests were charged when they were decided.",
    attributes: ["rule"],
  },
  unitsRefunded: {
    name: "floodgate.rate_limiting.units.refunded",
    kind: "counter",
    unit: "{unit}",
    description: "Units that refunds gave back.",
    attributes: ["rule"],
  },
  unitsSettled: {
    name: "floodgate.rate_limiting.units.settled",
    kind: "counter",
    unit: "{unit}",
    description: "Units that settlements charged in addition (result charged) or gave back (result refunded).",
    attributes: ["rule", "result"],
  },
  refunds: {
    name: "floodgate.rate_limiting.refunds",
    kind: "counter",
    unit: "{refund}",
    description: "Refunds, by result: succeeded or failed.",
    attributes: ["rule", "result"],
  },
  settlements: {
    name: "floodgate.rate_limiting.settlements",
    kind: "counter",
    unit: "{settlement}",
    description: "Settlements that changed a charge, by result: succeeded or failed.",
    attributes: ["rule", "result"],
  },
  timeInQueue: {
    name: "floodgate.rate_limiting.request.time_in_queue",
    kind: "histogram",
    unit: "s",
    description: "How long delayed requests had to wait in the queue of a leaky bucket.",
    attributes: ["rule"],
    buckets: delaySeconds,
  },
  decisionDuration: {
    name: "floodgate.rate_limiting.decision.duration",
    kind: "histogram",
    unit: "s",
    description: "How long the store took for a decision, one value for each rule of a request.",
    attributes: [],
    buckets: decisionSeconds,
  },
  bans: {
    name: "floodgate.rate_limiting.bans",
    kind: "counter",
    unit: "{ban}",
    description:
      "Keys banned after repeated rejections, by result: enforced, or shadow (the rule is in shadow mode, so nobody is rejected).",
    attributes: ["rule", "result"],
  },
  limit: {
    name: "floodgate.rate_limiting.limit",
    kind: "gauge",
    unit: "{unit}",
    description:
      "The largest cost that could ever pass: limit, capacity or burst of the rule. Of a rule with plans: that of keys without a plan.",
    attributes: ["rule"],
  },
  window: {
    name: "floodgate.rate_limiting.window",
    kind: "gauge",
    unit: "s",
    description: "The time in which a full limit comes back: the window, or the time that a bucket takes from empty to full.",
    attributes: ["rule"],
  },
  shadow: {
    name: "floodgate.rate_limiting.shadow",
    kind: "gauge",
    unit: "{rule}",
    description: "1 if the rule is in shadow mode, which rejects nothing; 0 if it is enforced.",
    attributes: ["rule"],
  },
  keys: {
    name: "floodgate.rate_limiting.keys",
    kind: "sum",
    unit: "{key}",
    description: "Keys that the memory stores hold now.",
    attributes: [],
  },
  evictions: {
    name: "floodgate.rate_limiting.evictions",
    kind: "counter",
    unit: "{eviction}",
    description:
      "Keys that a full memory store evicted before they had expired. Each of them starts anew, so the limit was not enforced for it.",
    attributes: ["rule"],
  },
  storeErrors: {
    name: "floodgate.rate_limiting.store.errors",
    kind: "counter",
    unit: "{error}",
    description: "Failures of stores and of their fallbacks, by code of the error; other if it has none.",
    attributes: ["error.type"],
  },
  breakers: {
    name: "floodgate.rate_limiting.store.breakers",
    kind: "sum",
    unit: "{breaker}",
    description:
      "Circuit breakers of stores that are in a state now: closed (the store is used), open (it is not), half-open (it is probed).",
    attributes: ["state"],
  },
  breakerTransitions: {
    name: "floodgate.rate_limiting.store.breaker_transitions",
    kind: "counter",
    unit: "{transition}",
    description: "Changes of circuit breakers to a state.",
    attributes: ["state"],
  },
  denyCacheHits: {
    name: "floodgate.rate_limiting.deny_cache.hits",
    kind: "counter",
    unit: "{hit}",
    description: "Rejections that were answered in this process, without a round trip to the store.",
    attributes: ["rule"],
  },
  roundTripDuration: {
    name: "floodgate.rate_limiting.store.round_trip.duration",
    kind: "histogram",
    unit: "s",
    description: "How long a command to Redis took, until its reply (result ok) or its failure (result error).",
    attributes: ["result"],
    buckets: decisionSeconds,
  },
  roundTripDecisions: {
    name: "floodgate.rate_limiting.store.round_trip.decisions",
    kind: "histogram",
    unit: "{decision}",
    description: "How many decisions, refunds and other steps travelled together in one command to Redis.",
    attributes: [],
    buckets: batchSizes,
  },
  rulesVersions: {
    name: "floodgate.rate_limiting.rules.versions",
    kind: "sum",
    unit: "{source}",
    description: "Live sources of rules in use, by their active version.",
    attributes: ["version"],
  },
  rulesRefused: {
    name: "floodgate.rate_limiting.rules.refused",
    kind: "sum",
    unit: "{source}",
    description: "Live sources of rules whose newest version is refused: the last good one stays active.",
    attributes: [],
  },
  rulesReloads: {
    name: "floodgate.rate_limiting.rules.reloads",
    kind: "counter",
    unit: "{reload}",
    description: "New versions of live rules, by result: accepted, or refused (invalid, or could not be read).",
    attributes: ["result"],
  },
  warnings: {
    name: "floodgate.rate_limiting.warnings",
    kind: "counter",
    unit: "{warning}",
    description: "Probable mistakes in how the app uses Floodgate, by code of the warning.",
    attributes: ["code"],
  },
};

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
