import { createLimiter, FloodgateError, type FloodgateEvent, fixedWindow } from "@floodgate/core";
import { memoryStore } from "@floodgate/store-memory";
import { describe, expect, it } from "vitest";
import { type CounterId, instruments } from "../src/instruments.js";
import { Measurements } from "../src/measurements.js";

type EventOf<Type, Event = FloodgateEvent> = Event extends { readonly type: infer Types }
  ? Type extends Types
    ? Event & { readonly type: Type }
    : never
  : never;

const limiter = createLimiter({ name: "api", policy: fixedWindow({ limit: 10, window: "365d" }), store: memoryStore() });
const decision = limiter.consume("k", { cost: 3 });
const who = { name: "api", key: "k" };
const decided = { ...who, decision, shadow: false, charged: 3, storeMs: 0.02 };
const error = new FloodgateError("FLOODGATE_STORE_TIMEOUT", "too late");

/**
 * An event of each type, and the series that it adds to. A new event of core does not compile until it has its line here, and until
 * `Measurements` measures it.
 */
const events: { [Type in FloodgateEvent["type"]]: readonly [event: EventOf<Type>, series: readonly string[]] } = {
  allowed: [
    { type: "allowed", ...decided },
    ["requests api allowed 1", "unitsRequested api allowed 3", "unitsCharged api 3", "decisionDuration 0.00002"],
  ],
  limited: [
    { type: "limited", ...decided, decision: { ...decision, allowed: false }, charged: 0 },
    ["requests api limited 1", "unitsRequested api limited 3", "decisionDuration 0.00002"],
  ],
  "shadow-limited": [
    { type: "shadow-limited", ...decided, decision: { ...decision, allowed: false }, shadow: true, charged: 0 },
    ["requests api shadow-limited 1", "unitsRequested api shadow-limited 3", "decisionDuration 0.00002"],
  ],
  delayed: [
    { type: "delayed", ...decided, decision: { ...decision, delayMs: 250, remaining: 1 } },
    [
      "requests api delayed 1",
      "unitsRequested api delayed 3",
      "unitsCharged api 3",
      "nearLimit api 1",
      "decisionDuration 0.00002",
      "timeInQueue api 0.25",
    ],
  ],
  degraded: [
    { type: "degraded", ...decided, decision: { ...decision, remaining: 0, degraded: true, degradedBy: "allow" }, charged: 0 },
    ["requests api failed-open 1", "unitsRequested api failed-open 3", "decisionDuration 0.00002"],
  ],
  request: [
    { type: "request", result: "limited", rejected: true, name: "api", decision: undefined, replaces: undefined },
    ["outcomes api limited 1"],
  ],
  exempt: [{ type: "exempt", name: "api" }, ["requests api exempt 1"]],
  "missing-key": [{ type: "missing-key", name: "api", rejected: true }, ["requests api missing-key 1"]],
  refunded: [{ type: "refunded", ...who, units: 2, decision }, ["refunds api succeeded 1", "unitsRefunded api 2"]],
  lease: [
    { type: "lease", ...who, units: 32, spent: 30 },
    ["leases api ended 1", "unitsLeased api spent 30", "unitsLeased api returned 2"],
  ],
  charged: [{ type: "charged", ...who, cost: 9, units: 9 }, ["unitsCharged api 9"]],
  settled: [{ type: "settled", ...who, cost: 1, units: -2, decision }, ["settlements api succeeded 1", "unitsSettled api refunded 2"]],
  "refund-failed": [{ type: "refund-failed", ...who, error }, ["refunds api failed 1"]],
  "settle-failed": [{ type: "settle-failed", error }, ["settlements unknown failed 1"]],
  "slot-lost": [{ type: "slot-lost", ...who, decision, counted: true }, ["slotsLost api retaken 1"]],
  evicted: [{ type: "evicted", ...who }, ["evictions api 1"]],
  banned: [{ type: "banned", ...who, forMs: 1000, shadow: false }, ["bans api enforced 1"]],
  blocked: [{ type: "blocked", ...who, forMs: 1000, by: "ann" }, ["keyChanges api blocked 1"]],
  unblocked: [{ type: "unblocked", ...who, by: undefined }, ["keyChanges api unblocked 1"]],
  reset: [{ type: "reset", ...who, by: undefined }, ["keyChanges api reset 1"]],
  granted: [{ type: "granted", ...who, plan: "pro", until: "2027-01-31", by: "ann" }, ["keyChanges api granted 1"]],
  "round-trip": [{ type: "round-trip", steps: 7, ms: 1.5, ok: true }, ["roundTripDuration ok 0.0015", "roundTripDecisions 7"]],
  "deny-cache-hit": [{ type: "deny-cache-hit", name: "api" }, ["denyCacheHits api 1"]],
  "store-error": [{ type: "store-error", error }, ["storeErrors FLOODGATE_STORE_TIMEOUT 1"]],
  breaker: [{ type: "breaker", state: "open" }, ["breakerTransitions open  1"]],
  "rules-reloaded": [{ type: "rules-reloaded", source: "limits.yaml", version: "2" }, ["rulesReloads accepted 1"]],
  "rules-refused": [{ type: "rules-refused", source: "limits.yaml", error }, ["rulesReloads refused 1"]],
  warning: [{ type: "warning", code: "FLOODGATE_COUNTED_TWICE", message: "twice" }, ["warnings FLOODGATE_COUNTED_TWICE 1"]],
};

/** The series that events add to, each with its total or the value that was recorded. */
function measured(...events: readonly FloodgateEvent[]): string[] {
  const recorded: string[] = [];
  const text = (id: string, attributes: object, value: number) => [id, ...Object.values(attributes), value].join(" ");
  const measurements = new Measurements((id, attributes) => (value) => recorded.push(text(id, attributes, Number(value.toFixed(9)))), 500);
  for (const event of events) measurements.add(event);
  const counters = Object.keys(instruments).filter((id) => instruments[id as CounterId].kind === "counter") as CounterId[];
  const totals = counters.flatMap((id) => [...measurements.totals(id)].map(({ attributes, value }) => ({ id, attributes, value })));
  return [...totals.filter(({ value }) => value !== 0).map(({ id, attributes, value }) => text(id, attributes, value)), ...recorded];
}

describe("each event of core is measured", () => {
  it.each(Object.entries(events))("%s", (_, [event, series]) => {
    expect(measured(event).sort()).toEqual([...series].sort());
  });

  it.each<[string, FloodgateEvent, string[]]>([
    ["a key that was missing, but not rejected", { type: "missing-key", name: "api", rejected: false }, ["requests api skipped 1"]],
    ["a lease that begins", { ...events.lease[0], spent: undefined }, ["leases api begun 1", "unitsLeased api charged 32"]],
    ["a settlement that charges", { ...events.settled[0], units: 4 }, ["settlements api succeeded 1", "unitsSettled api charged 4"]],
    ["a slot that is lost while the limit is full", { ...events["slot-lost"][0], counted: false }, ["slotsLost api beside 1"]],
    ["a ban in shadow mode", { ...events.banned[0], shadow: true }, ["bans api shadow 1"]],
    ["a store error that is not one of ours", { type: "store-error", error: new Error("k") }, ["storeErrors other 1"]],
    ["a failed round trip", { type: "round-trip", steps: 1, ms: 100, ok: false }, ["roundTripDuration error 0.1", "roundTripDecisions 1"]],
  ])("%s has a series of its own", (_, event, series) => {
    expect(measured(event).sort()).toEqual(series.sort());
  });

  it("a delay of a rule in shadow mode is no time in a queue, because nobody waits", () => {
    const [delayed] = events.delayed;
    expect(measured({ ...delayed, shadow: true }).filter((series) => series.startsWith("timeInQueue"))).toEqual([]);
  });
});

it("the requests and evictions of a rule begin at 0, so that the first ones are an increase", () => {
  const measurements = new Measurements(() => () => undefined, 500);
  measurements.add(events.exempt[0]);
  const zeros = (id: CounterId) => [...measurements.totals(id)].filter(({ value }) => value === 0).map(({ attributes }) => attributes);
  expect(zeros("requests")).toEqual(["allowed", "limited", "failed-open", "failed-closed"].map((result) => ({ rule: "api", result })));
  expect(zeros("evictions")).toEqual([{ rule: "api" }]);
});
