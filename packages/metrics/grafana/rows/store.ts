import { lines, type Panel, row, stat } from "../panels.js";
import { byRule, mean, now, orZero, percentile, percentiles, perSecond, series, share, withoutStore } from "../query.js";

const notClosed = { state: "open|half-open" };

export const store: readonly Panel[] = [
  row("Is the store well?"),
  stat({
    title: "Breakers not closed",
    description:
      "Stores that are not asked now, because they failed several times. Floodgate probes them and returns by itself. Look at the store: is Redis up, and can this process reach it?",
    unit: "short",
    query: orZero(now("breakers", notClosed)),
    thresholds: [[1, "red"]],
  }),
  stat({
    title: "Store errors",
    description: "Failures per second of stores and their fallbacks. The panel below shows them by code.",
    unit: "ops",
    query: orZero(perSecond("storeErrors")),
    thresholds: [[0.001, "red"]],
  }),
  stat({
    title: "Redis, 99th percentile",
    description:
      "99 % of the commands to Redis are answered within this time. Above timeoutMs (100 ms by default) requests are decided without the store.",
    unit: "s",
    query: percentile(0.99, "roundTripDuration", { result: "ok" }),
    thresholds: [
      [0.02, "yellow"],
      [0.05, "red"],
    ],
  }),
  stat({
    title: "Decisions per command",
    description:
      "How many decisions share one command to Redis. 1 under low load is right. Under high load more is better: each command then costs Redis less.",
    unit: "short",
    query: mean("roundTripDecisions"),
  }),
  stat({
    title: "Keys in memory",
    description: "Keys that the memory stores hold now. If it stays at maxKeys, the store is full and evicts keys.",
    unit: "short",
    query: orZero(now("keys")),
  }),
  stat({
    title: "Evictions",
    description:
      "Keys per second that a full memory store dropped before they expired. Their limits start anew. Raise maxKeys, or use Redis.",
    unit: "ops",
    query: orZero(perSecond("evictions")),
    thresholds: [[0.001, "orange"]],
  }),
  lines({
    title: "Store errors by code",
    description:
      "Timeouts mean a slow store or a busy event loop; look at the round-trip time. Connection errors mean that the store is down or out of reach. Any other code: look it up in docs/reliability.md.",
    unit: "ops",
    queries: { "{{error_type}}": perSecond("storeErrors", {}, ["error_type"]) },
  }),
  lines({
    title: "Without the store by rule",
    description:
      "Decisions per second that were made without the store, by rule and by how: failed-open let the request pass, failed-closed rejected it, and a fallback counted it in this process. One rule alone: its keys are on a part of the store that fails, or it has a store of its own.",
    unit: "ops",
    queries: { "{{rule}} {{result}}": perSecond("requests", withoutStore, ["rule", "result"]) },
  }),
  lines({
    title: "Circuit breakers by state",
    description: "All should be closed: the store is used. Open: it is not asked. Half-open: one request probes it.",
    unit: "short",
    stacked: true,
    byResult: true,
    queries: { "{{state}}": now("breakers", {}, ["state"]) },
  }),
  lines({
    title: "Changes of circuit breakers",
    description:
      "How often breakers open, probe and close. A breaker that opens and closes again and again has a store that is just too slow: raise timeoutMs, or make Redis faster.",
    unit: "ops",
    byResult: true,
    queries: { "{{state}}": perSecond("breakerTransitions", {}, ["state"]) },
  }),
  lines({
    title: "Time for a decision",
    description:
      "How long the store takes for a decision, as a request sees it. Memory takes microseconds. Redis takes a round trip and the time that a decision waits to be sent. If only the 99th percentile is high, look at garbage collection and event-loop delays of this process.",
    unit: "s",
    logarithmic: true,
    queries: percentiles("decisionDuration"),
  }),
  lines({
    title: "Round trips to Redis",
    description:
      "How long a command to Redis takes, until its reply or its failure. If it rises with the number of commands, Redis is busy. If it rises alone, look at the network or at slow commands of others (SLOWLOG).",
    unit: "s",
    logarithmic: true,
    queries: {
      ...percentiles("roundTripDuration", { result: "ok" }),
      "failed, 99 % are below": percentile(0.99, "roundTripDuration", { result: "error" }),
    },
  }),
  lines({
    title: "Leased units",
    description:
      "Units of busy keys per second: charged in Redis ahead of the requests, spent by them, and returned unused. If most come back, the keys are not busy enough to lease.",
    unit: "ops",
    queries: { "{{rule}} {{result}}": perSecond("unitsLeased", {}, ["rule", "result"]) },
  }),
  lines({
    title: "Leases in use",
    description: "How many keys are leased now, by rule, once or twice in each process. The event lease names them.",
    unit: "short",
    queries: { "{{rule}}": `${now("leases", { result: "begun" }, byRule)} - ${now("leases", { result: "ended" }, byRule)}` },
  }),
  lines({
    title: "Commands to Redis",
    description: "Commands per second, by result, and the decisions that they carried. The gap between the two is what batching saves.",
    unit: "ops",
    queries: {
      "commands, {{result}}": `sum by (result) (rate(${series("roundTripDuration", {}, "_count")}[$__rate_interval]))`,
      decisions: `sum(rate(${series("roundTripDecisions", {}, "_sum")}[$__rate_interval]))`,
    },
  }),
  lines({
    title: "Deny cache: share of rejections",
    description:
      "The share of rejections that this process answered without asking Redis. High during an attack is good: the attack does not reach Redis.",
    unit: "percentunit",
    max: 1,
    queries: {
      "{{rule}}": share(
        perSecond("denyCacheHits", {}, byRule),
        perSecond("requests", { result: "limited|blocked|banned|shadow-limited" }, byRule),
      ),
    },
  }),
  lines({
    title: "Keys in memory by process",
    description:
      "A line that is flat at the top has reached maxKeys. One that grows without traffic growth: keys are made of something that clients choose.",
    unit: "short",
    queries: { "{{instance}}": now("keys", {}, ["instance"]) },
  }),
  lines({
    title: "Evictions by rule",
    description: "Live keys per second that a full memory store dropped. Raise maxKeys until this is zero, or use Redis.",
    unit: "ops",
    queries: { "{{rule}}": perSecond("evictions", {}, byRule) },
  }),
];
