import { FloodgateError, type FloodgateEvent, observe } from "@floodgate/core";
import { resultOf } from "@floodgate/core/rules";
import {
  type BatchObservableResult,
  createNoopMeter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
  type Observable,
  trace,
} from "@opentelemetry/api";
import { type MetricsOptions, maxRulesOf, onePerTarget, type Running } from "./exporter.js";
import { type CounterId, type HistogramId, type InstrumentId, instruments, type NowId } from "./instruments.js";
import { Measurements } from "./measurements.js";
import { readNumbers } from "./numbers.js";
import type { Attributes, Recorder } from "./series.js";

export type { MetricsOptions } from "./exporter.js";

export interface OpenTelemetryOptions extends MetricsOptions {
  /** Where the metrics go. Default: the global provider of `@opentelemetry/api`, even if the app sets it later. */
  meterProvider?: MeterProvider;
}

const useExporter = onePerTarget<OpenTelemetryExporter>();

/** Stands for the global provider. */
const globalProvider: MeterProvider = { getMeter: (name, version, options) => metrics.getMeterProvider().getMeter(name, version, options) };

/**
 * Measures all of Floodgate in this process, whatever was made before or comes later, with OpenTelemetry. Call it before or after the SDK
 * starts: what was counted before is not lost, but durations are recorded from then on only. The active span of a request that a rule
 * limits, or decides without the store, gets an event.
 *
 *     const stop = openTelemetry();
 *
 * A second call with the same provider adds nothing: each request counts once. The options of the first call hold.
 * @returns a function that stops it. After several calls with one provider, each must be stopped. Shut the SDK down first: what is counted
 * after its last collection is lost otherwise.
 * @throws FloodgateError if an option is unknown or invalid.
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): () => void {
  const maxRules = maxRulesOf("openTelemetry", options, ["meterProvider"], "openTelemetry({ meterProvider })");
  const { meterProvider } = options;
  if (meterProvider !== undefined) checkProvider(meterProvider);
  const provider = meterProvider === undefined || meterProvider === metrics.getMeterProvider() ? globalProvider : meterProvider;
  return useExporter(provider, () => new OpenTelemetryExporter(provider, maxRules));
}

/** How often an exporter looks for the global provider, until there is one or an event comes. */
const lookEveryMs = 1000;

class OpenTelemetryExporter implements Running {
  readonly #provider: MeterProvider;
  readonly #measurements: Measurements;
  readonly #stopObserving: () => void;
  /** What is known once there is a meter that is not the API's own, which does nothing. */
  #connection: Connection | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(provider: MeterProvider, maxRules: number) {
    this.#provider = provider;
    this.#measurements = new Measurements((id, attributes) => this.#recorder(id, attributes), maxRules);
    this.#stopObserving = observe((event) => {
      if (this.#connection === undefined) this.#connect();
      this.#measurements.add(event);
      markSpan(event);
    });
    this.#connect();
    if (this.#connection === undefined) this.#timer = every(lookEveryMs, () => this.#connect());
  }

  stop(): void {
    this.#stopObserving();
    clearInterval(this.#timer);
    this.#connection?.close();
  }

  #connect(): void {
    if (this.#connection !== undefined) return;
    const meter = this.#provider.getMeter("@floodgate/metrics");
    if (meter === createNoopMeter()) return;
    clearInterval(this.#timer);
    this.#connection = new Connection(meter, this.#measurements);
  }

  #recorder(id: HistogramId, attributes: Attributes): Recorder {
    return (value) => this.#connection?.histograms[id].record(value, attributes);
  }
}

/** The instruments of one meter. */
class Connection {
  readonly histograms: Readonly<Record<HistogramId, Histogram>>;
  readonly #meter: Meter;
  readonly #measurements: Measurements;
  readonly #counters: ReadonlyMap<CounterId, Observable>;
  readonly #numbers: ReadonlyMap<NowId, Observable>;
  /** The sums that were reported last time, by their attributes' values. An SDK repeats a value until it gets another one. */
  #sums = new Map<string, Sum>();

  constructor(meter: Meter, measurements: Measurements) {
    this.#meter = meter;
    this.#measurements = measurements;
    const histograms: Partial<Record<HistogramId, Histogram>> = {};
    const counters = new Map<CounterId, Observable>();
    const numbers = new Map<NowId, Observable>();
    for (const id of Object.keys(instruments) as InstrumentId[]) {
      const { name, kind, unit, description, buckets = [] } = instruments[id];
      if (kind === "counter") counters.set(id as CounterId, meter.createObservableCounter(name, { unit, description }));
      if (kind === "sum") numbers.set(id as NowId, meter.createObservableUpDownCounter(name, { unit, description }));
      if (kind === "gauge") numbers.set(id as NowId, meter.createObservableGauge(name, { unit, description }));
      if (kind === "histogram") {
        const advice = { explicitBucketBoundaries: [...buckets] };
        histograms[id as HistogramId] = meter.createHistogram(name, { unit, description, advice });
      }
    }
    this.histograms = histograms as Record<HistogramId, Histogram>;
    this.#counters = counters;
    this.#numbers = numbers;
    meter.addBatchObservableCallback(this.#report, [...counters.values(), ...numbers.values()]);
  }

  close(): void {
    this.#meter.removeBatchObservableCallback(this.#report, [...this.#counters.values(), ...this.#numbers.values()]);
  }

  readonly #report = (result: BatchObservableResult): void => {
    const readings = readNumbers((name) => this.#measurements.ruleOf(name));
    const sums = new Map<string, Sum>();
    for (const [id, instrument] of this.#numbers) {
      for (const { attributes, value } of readings[id]) {
        result.observe(instrument, value, attributes);
        if (instruments[id].kind === "sum") sums.set([id, ...Object.values(attributes)].join("\n"), { instrument, attributes });
      }
    }
    for (const [key, { instrument, attributes }] of this.#sums) if (!sums.has(key)) result.observe(instrument, 0, attributes);
    this.#sums = sums;
    for (const [id, instrument] of this.#counters) {
      for (const { attributes, value } of this.#measurements.totals(id)) result.observe(instrument, value, attributes);
    }
  };
}

interface Sum {
  readonly instrument: Observable;
  readonly attributes: Attributes;
}

/** Repeats without keeping the process alive. */
function every(ms: number, run: () => void): ReturnType<typeof setInterval> | undefined {
  try {
    const timer = setInterval(run, ms);
    timer.unref?.();
    return timer;
  } catch {
    // Workers refuse timers outside of requests. Events look for the provider there.
    return undefined;
  }
}

function checkProvider(meterProvider: unknown): void {
  if (typeof (meterProvider as Partial<MeterProvider> | null)?.getMeter === "function") return;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    "openTelemetry: `meterProvider` must be a MeterProvider of OpenTelemetry. Write openTelemetry({ meterProvider: new MeterProvider({ readers: [reader] }) }), or leave it out for the global one.",
    { at: ["meterProvider"] },
  );
}

/** Adds an event to the active span of a request that was not plainly let through. It names the rule and the result, never the key. */
function markSpan(event: FloodgateEvent): void {
  switch (event.type) {
    case "limited":
    case "shadow-limited":
    case "degraded":
      break;
    case "missing-key":
      if (event.rejected) break;
      return;
    default:
      return;
  }
  trace.getActiveSpan()?.addEvent("floodgate.rate_limiting", {
    "floodgate.rate_limiting.rule": event.name,
    "floodgate.rate_limiting.result": event.type === "missing-key" ? event.type : resultOf(event),
  });
}
