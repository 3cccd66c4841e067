import { type DecisionEvent, FloodgateError, type FloodgateEvent } from "@floodgate/core";
import { type DecisionResult, type RequestEvent, type RequestResult, resultOf } from "@floodgate/core/rules";
import { type CounterId, type HistogramId, type InstrumentId, instruments } from "./instruments.js";
import { type Attributes, type Recorder, rulesByName, SeriesOf, type Total } from "./series.js";

type LeaseEvent = Extract<FloodgateEvent, { readonly type: "lease" }>;

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

/** The series that a request under a rule adds to, looked up once. */
interface RuleSeries {
  readonly name: string;
  readonly outcomes: { [R in RequestResult]?: Outcomes };
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
  readonly #ruleless: RuleSeries["outcomes"] = {};
  readonly #outcomes: Outcomes[] = [];
  readonly #decisionDuration: Recorder;
  readonly #roundTripDecisions: Recorder;

  /**
   * @param recorder makes a series of a histogram.
   * @param maxRules how many rules are told apart.
   */
  constructor(recorder: (id: HistogramId, attributes: Attributes) => Recorder, maxRules: number) {
    for (const id of Object.keys(instruments) as InstrumentId[]) {
      const { kind } = instruments[id];
      if (kind === "counter") this.#counters[id as CounterId] = new SeriesOf(instruments[id], newTotal);
      if (kind === "histogram") {
        this.#histograms[id as HistogramId] = new SeriesOf(instruments[id], (attributes) => recorder(id as HistogramId, attributes));
      }
    }
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

  readonly add = (event: FloodgateEvent): void => {
    const counters = this.#counters;
    switch (event.type) {
      case "allowed":
      case "limited":
      case "shadow-limited":
      case "delayed":
      case "degraded":
        this.#decided(event);
        break;
      case "request":
        this.#requested(event);
        break;
      case "exempt":
        this.#resultOf(this.#ruleSeries(event.name), "exempt").requests.value++;
        break;
      case "missing-key":
        this.#resultOf(this.#ruleSeries(event.name), event.rejected ? "missing-key" : "skipped").requests.value++;
        break;
      case "deny-cache-hit": {
        const rule = this.#ruleSeries(event.name);
        rule.denyCacheHits ??= counters.denyCacheHits.with(rule.name);
        rule.denyCacheHits.value++;
        break;
      }
      case "round-trip":
        this.#histograms.roundTripDuration.with(event.ok ? "ok" : "error")(event.ms / 1000);
        this.#roundTripDecisions(event.steps);
        break;
      case "refunded": {
        const rule = this.ruleOf(event.name);
        counters.refunds.with(rule, "succeeded").value++;
        counters.unitsRefunded.with(rule).value += event.units;
        break;
      }
      case "charged":
        this.#ruleSeries(event.name).unitsCharged.value += event.units;
        break;
      case "settled": {
        const rule = this.ruleOf(event.name);
        counters.settlements.with(rule, "succeeded").value++;
        counters.unitsSettled.with(rule, event.units < 0 ? "refunded" : "charged").value += Math.abs(event.units);
        break;
      }
      case "refund-failed":
        counters.refunds.with(this.ruleOf(event.name ?? unknownRule), "failed").value++;
        break;
      case "settle-failed":
        counters.settlements.with(this.ruleOf(event.name ?? unknownRule), "failed").value++;
        break;
      case "slot-lost":
        counters.slotsLost.with(this.ruleOf(event.name), event.counted ? "retaken" : "beside").value++;
        break;
      case "lease":
        this.#leased(event);
        break;
      case "evicted":
        counters.evictions.with(this.ruleOf(event.name)).value++;
        break;
      case "banned":
        counters.bans.with(this.ruleOf(event.name), event.shadow ? "shadow" : "enforced").value++;
        break;
      case "blocked":
      case "unblocked":
      case "reset":
      case "granted":
        counters.keyChanges.with(this.ruleOf(event.name), event.type).value++;
        break;
      case "store-error":
        counters.storeErrors.with(event.error instanceof FloodgateError ? event.error.code : "other").value++;
        break;
      case "breaker":
        counters.breakerTransitions.with(event.state, event.part ?? "").value++;
        break;
      case "rules-reloaded":
        counters.rulesReloads.with("accepted").value++;
        break;
      case "rules-refused":
        counters.rulesReloads.with("refused").value++;
        break;
      case "warning":
        counters.warnings.with(event.code).value++;
        break;
      default:
        // A new event of core does not compile until it is measured here.
        event satisfies never;
    }
  };

  #leased({ name, units, spent }: LeaseEvent): void {
    const rule = this.ruleOf(name);
    const add = (id: CounterId, result: string, more: number): void => {
      this.#counters[id].with(rule, result).value += more;
    };
    // Adds zeros too: all series begin with the first lease, so that their differences have a value.
    add("leases", "begun", spent === undefined ? 1 : 0);
    add("leases", "ended", spent === undefined ? 0 : 1);
    add("unitsLeased", "charged", spent === undefined ? units : 0);
    add("unitsLeased", "spent", spent ?? 0);
    add("unitsLeased", "returned", units - (spent ?? units));
  }

  #requested({ name, result, replaces }: RequestEvent): void {
    if (replaces !== undefined) {
      const before = this.#outcomesOf(replaces.name, replaces.result);
      if (before.total.value > before.read) before.total.value--;
      else before.owed++;
    }
    const outcomes = this.#outcomesOf(name, result);
    if (outcomes.owed > 0) outcomes.owed--;
    else outcomes.total.value++;
  }

  #outcomesOf(name: string | undefined, result: RequestResult): Outcomes {
    const rule = name === undefined ? undefined : this.#ruleSeries(name);
    return this.#outcomesIn(rule?.outcomes ?? this.#ruleless, rule?.name ?? "", result);
  }

  #outcomesIn(known: RuleSeries["outcomes"], rule: string, result: RequestResult): Outcomes {
    let outcomes = known[result];
    if (outcomes === undefined) {
      outcomes = { total: this.#counters.outcomes.with(rule, result), read: 0, owed: 0 };
      known[result] = outcomes;
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
      this.#outcomesIn(rule.outcomes, name, result);
    }
    evictions.with(name);
    return rule;
  }
}

function newTotal(attributes: Attributes): Total {
  return { attributes, value: 0 };
}
