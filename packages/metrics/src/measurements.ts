import { type DecisionEvent, FloodgateError, type FloodgateEvent } from "@floodgate/core";
import { type DecisionResult, type RequestEvent, type RequestResult, resultOf } from "@floodgate/core/rules";
import { type CounterId, counterIds, type HistogramId, histogramIds, instruments } from "./instruments.js";
import { type Attributes, type Recorder, rulesByName, SeriesOf, type Total } from "./series.js";

/** What became of a request under a rule. */
type Result = DecisionResult | "exempt" | "missing-key" | "skipped";

/** The requests and the units of one rule and result. */
interface ResultSeries {
  readonly requests: Total;
  readonly units: Total;
}

/** Whole requests of one rule and result. */
interface Outcomes {
  readonly total: Total;
  /** What an exporter has read: the total must not fall below it. */
  read: number;
  /** Requests to take back that were read before. The next ones are not counted in their place. */
  owed: number;
}

/** Whole requests under the rule that decided. */
interface RequestSeries {
  readonly name: string;
  readonly outcomes: { [R in RequestResult]?: Outcomes };
}

/** The series that a request under a rule adds to, looked up once. */
interface RuleSeries extends RequestSeries {
  readonly results: { [R in Result]?: ResultSeries };
  readonly nearLimit: Total;
  readonly unitsCharged: Total;
  denyCacheHits?: Total;
}

/** A key with less than this share of its limit left is near the limit. */
const nearLimitShare = 0.2;

/** The rule of a failed refund or settlement whose rule is not known. */
const unknownRule = "unknown";

/**
 * Translates events to measurements. Counters are kept here, because adding to a number costs a fraction of what an exporter's counter
 * costs; exporters read them when they collect. Histograms are the exporter's own.
 */
export class Measurements {
  readonly #counters = {} as Record<CounterId, SeriesOf<Total>>;
  readonly #histograms = {} as Record<HistogramId, SeriesOf<Recorder>>;
  readonly #ruleSeries: (name: string) => RuleSeries;
  /** Of requests that no rule decided. */
  readonly #ruleless: RequestSeries = { name: "", outcomes: {} };
  readonly #outcomes: Outcomes[] = [];
  readonly #decisionDuration: Recorder;
  readonly #roundTripDecisions: Recorder;

  /**
   * @param recorder makes a series of a histogram.
   * @param maxRules how many rules are told apart.
   */
  constructor(recorder: (id: HistogramId, attributes: Attributes) => Recorder, maxRules: number) {
    for (const id of counterIds) this.#counters[id] = new SeriesOf(instruments[id], (attributes) => ({ attributes, value: 0 }));
    for (const id of histogramIds) this.#histograms[id] = new SeriesOf(instruments[id], (attributes) => recorder(id, attributes));
    this.#ruleSeries = rulesByName(maxRules, (name) => this.#begin(name));
    this.#decisionDuration = this.#histograms.decisionDuration.with();
    this.#roundTripDecisions = this.#histograms.roundTripDecisions.with();
    for (const state of ["closed", "open", "half-open"]) this.#counters.breakerTransitions.with(state, "");
    for (const result of ["accepted", "refused"]) this.#counters.rulesReloads.with(result);
  }

  totals(id: CounterId): Iterable<Total> {
    if (id === "outcomes") for (const outcomes of this.#outcomes) outcomes.read = outcomes.total.value;
    return this.#counters[id].all();
  }

  ruleOf(name: string): string {
    return this.#ruleSeries(name).name;
  }

  add(event: FloodgateEvent): void {
    const measure = this.#measure[event.type] as ((event: FloodgateEvent) => void) | undefined;
    // A newer core may have events that are not known here.
    measure?.(event);
  }

  /** What each event measures. A new event of core does not compile until it has an entry. */
  readonly #measure: { readonly [Type in FloodgateEvent["type"]]: (event: FloodgateEvent & { readonly type: Type }) => void } = {
    allowed: (event) => this.#decided(event),
    limited: (event) => this.#decided(event),
    "shadow-limited": (event) => this.#decided(event),
    delayed: (event) => this.#decided(event),
    degraded: (event) => this.#decided(event),
    request: (event) => this.#requested(event),
    exempt: ({ name }) => this.#resultOf(this.#ruleSeries(name), "exempt").requests.value++,
    "missing-key": ({ name, rejected }) => this.#resultOf(this.#ruleSeries(name), rejected ? "missing-key" : "skipped").requests.value++,
    "deny-cache-hit": ({ name }) => {
      const rule = this.#ruleSeries(name);
      rule.denyCacheHits ??= this.#counters.denyCacheHits.with(rule.name);
      rule.denyCacheHits.value++;
    },
    "round-trip": ({ ok, ms, steps }) => {
      this.#histograms.roundTripDuration.with(ok ? "ok" : "error")(ms / 1000);
      this.#roundTripDecisions(steps);
    },
    charged: ({ name, units }) => {
      this.#ruleSeries(name).unitsCharged.value += units;
    },
    refunded: ({ name, units }) => {
      this.#count("refunds", name, "succeeded");
      this.#counters.unitsRefunded.with(this.ruleOf(name)).value += units;
    },
    "refund-failed": ({ name = unknownRule }) => this.#count("refunds", name, "failed"),
    settled: ({ name, units }) => {
      this.#count("settlements", name, "succeeded");
      this.#count("unitsSettled", name, units < 0 ? "refunded" : "charged", Math.abs(units));
    },
    "settle-failed": ({ name = unknownRule }) => this.#count("settlements", name, "failed"),
    "slot-lost": ({ name, counted }) => this.#count("slotsLost", name, counted ? "retaken" : "beside"),
    lease: ({ name, units, spent }) => {
      // Adds zeros too: all series begin with the first lease, so that their differences have a value.
      this.#count("leases", name, "begun", spent === undefined ? 1 : 0);
      this.#count("leases", name, "ended", spent === undefined ? 0 : 1);
      this.#count("unitsLeased", name, "charged", spent === undefined ? units : 0);
      this.#count("unitsLeased", name, "spent", spent ?? 0);
      this.#count("unitsLeased", name, "returned", units - (spent ?? units));
    },
    evicted: ({ name }) => this.#counters.evictions.with(this.ruleOf(name)).value++,
    banned: ({ name, shadow }) => this.#count("bans", name, shadow ? "shadow" : "enforced"),
    blocked: ({ name, type }) => this.#count("keyChanges", name, type),
    unblocked: ({ name, type }) => this.#count("keyChanges", name, type),
    reset: ({ name, type }) => this.#count("keyChanges", name, type),
    granted: ({ name, type }) => this.#count("keyChanges", name, type),
    "store-error": ({ error }) => this.#counters.storeErrors.with(error instanceof FloodgateError ? error.code : "other").value++,
    breaker: ({ state, part = "" }) => this.#counters.breakerTransitions.with(state, part).value++,
    "rules-reloaded": () => this.#counters.rulesReloads.with("accepted").value++,
    "rules-refused": () => this.#counters.rulesReloads.with("refused").value++,
    warning: ({ code }) => this.#counters.warnings.with(code).value++,
  };

  /** Adds to the counter of a rule and a result. */
  #count(id: CounterId, name: string, result: string, more = 1): void {
    this.#counters[id].with(this.ruleOf(name), result).value += more;
  }

  #requested({ name, result, replaces }: RequestEvent): void {
    if (replaces !== undefined) {
      const before = this.#outcomesOf(this.#seriesOf(replaces.name), replaces.result);
      if (before.total.value > before.read) before.total.value--;
      // What was counted before this began is not to be taken back.
      else if (before.read > before.owed) before.owed++;
    }
    const outcomes = this.#outcomesOf(this.#seriesOf(name), result);
    if (outcomes.owed > 0) outcomes.owed--;
    else outcomes.total.value++;
  }

  #seriesOf(name: string | undefined): RequestSeries {
    return name === undefined ? this.#ruleless : this.#ruleSeries(name);
  }

  #outcomesOf(rule: RequestSeries, result: RequestResult): Outcomes {
    let outcomes = rule.outcomes[result];
    if (outcomes === undefined) {
      outcomes = { total: this.#counters.outcomes.with(rule.name, result), read: 0, owed: 0 };
      rule.outcomes[result] = outcomes;
      this.#outcomes.push(outcomes);
    }
    return outcomes;
  }

  #decided(event: DecisionEvent): void {
    const { name, decision, shadow, charged, storeMs } = event;
    const rule = this.#ruleSeries(name);
    const result = this.#resultOf(rule, resultOf(event));
    result.requests.value++;
    result.units.value += decision.cost;
    rule.unitsCharged.value += charged;
    this.#decisionDuration(storeMs / 1000);
    if (!decision.allowed) return;
    if (!decision.degraded && decision.remaining < nearLimitShare * decision.limit) rule.nearLimit.value++;
    if (decision.delayMs > 0 && !shadow) this.#histograms.timeInQueue.with(rule.name)(decision.delayMs / 1000);
  }

  #resultOf(rule: RuleSeries, result: Result): ResultSeries {
    const known = rule.results[result];
    if (known !== undefined) return known;
    const { requests, unitsRequested } = this.#counters;
    const series = { requests: requests.with(rule.name, result), units: unitsRequested.with(rule.name, result) };
    rule.results[result] = series;
    return series;
  }

  /** A rule's usual series begin at 0, so that the first rejections already are an increase. */
  #begin(name: string): RuleSeries {
    const { nearLimit, unitsCharged, evictions } = this.#counters;
    const rule: RuleSeries = { name, outcomes: {}, results: {}, nearLimit: nearLimit.with(name), unitsCharged: unitsCharged.with(name) };
    for (const result of ["allowed", "limited", "failed-open", "failed-closed"] as const) {
      this.#resultOf(rule, result);
      this.#outcomesOf(rule, result);
    }
    evictions.with(name);
    return rule;
  }
}
