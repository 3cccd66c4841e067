import { type FloodgateEvent, observe } from "@floodgate/core";
import { resultOf, wrongOption } from "@floodgate/core/rules";
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
import { readCurrentValues } from "./current-values.js";
import { type Exporter, type MetricsOptions, maxRulesOf, onePerTarget } from "./exporter.js";
import { counterIds, type HistogramId, histogramIds, instruments, nowIds } from "./instruments.js";
import { Measurements } from "./measurements.js";
import type { Attributes, Recorder } from "./series.js";

export type { MetricsOptions } from "./exporter.js";

export interface OpenTelemetryOptions extends MetricsOptions {
  /** Where the metrics go. Default: the global provider of `@opentelemetry/api`, even if the app sets it later. */
  meterProvider?: MeterProvider;
}

const useExporter = onePerTarget();

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
  return useExporter(provider, () => startExporter(provider, maxRules));
}

/** How often an exporter looks for the global provider, until there is one or an event comes. */
const lookEveryMs = 1000;

function startExporter(provider: MeterProvider, maxRules: number): Exporter {
  /** Undefined while the provider has only the API's own meter, which does nothing. */
  let connection: Connection | undefined;
  const recorder = (id: HistogramId, attributes: Attributes): Recorder => {
    return (value) => connection?.histograms[id].record(value, attributes);
  };
  const measurements = new Measurements(recorder, maxRules);
  let timer: ReturnType<typeof setInterval> | undefined;
  const look = (): void => {
    if (connection !== undefined) return;
    const meter = provider.getMeter("@floodgate/metrics");
    if (meter === createNoopMeter()) return;
    clearInterval(timer);
    connection = connect(meter, measurements);
  };
  const stopObserving = observe((event) => {
    look();
    measurements.add(event);
    markSpan(event);
  });
  look();
  if (connection === undefined) timer = every(lookEveryMs, look);
  return {
    stop() {
      stopObserving();
      clearInterval(timer);
      connection?.close();
    },
  };
}

interface Connection {
  readonly histograms: Readonly<Record<HistogramId, Histogram>>;
  close(): void;
}

/** Makes the instruments of a meter, and fills them whenever it collects. */
function connect(meter: Meter, measurements: Measurements): Connection {
  const histograms = {} as Record<HistogramId, Histogram>;
  for (const id of histogramIds) {
    const { name, unit, description, buckets = [] } = instruments[id];
    histograms[id] = meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: [...buckets] } });
  }
  const counters = counterIds.map((id) => ({ id, observable: meter.createObservableCounter(instruments[id].name, instruments[id]) }));
  const numbers = nowIds.map((id) => {
    const instrument = instruments[id];
    const isSum = instrument.kind === "sum";
    return { id, isSum, observable: meter[isSum ? "createObservableUpDownCounter" : "createObservableGauge"](instrument.name, instrument) };
  });
  /** The sums that were reported last time, by their attributes' values. An SDK repeats a value until it gets another one. */
  let sums = new Map<string, { readonly observable: Observable; readonly attributes: Attributes }>();
  const report = (result: BatchObservableResult): void => {
    const readings = readCurrentValues((name) => measurements.ruleOf(name));
    const before = sums;
    sums = new Map();
    for (const { id, isSum, observable } of numbers) {
      for (const { attributes, value } of readings[id]) {
        result.observe(observable, value, attributes);
        if (isSum) sums.set([id, ...Object.values(attributes)].join("\n"), { observable, attributes });
      }
    }
    for (const [key, { observable, attributes }] of before) if (!sums.has(key)) result.observe(observable, 0, attributes);
    for (const { id, observable } of counters) {
      for (const { attributes, value } of measurements.totals(id)) result.observe(observable, value, attributes);
    }
  };
  const observables = [...counters, ...numbers].map(({ observable }) => observable);
  meter.addBatchObservableCallback(report, observables);
  return { histograms, close: () => meter.removeBatchObservableCallback(report, observables) };
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
  const example = "openTelemetry({ meterProvider: new MeterProvider({ readers: [reader] }) }), or leave it out for the global one";
  throw wrongOption("openTelemetry", "meterProvider", "a MeterProvider of OpenTelemetry", meterProvider, example);
}

/** Adds an event to the active span of a request that was not plainly let through. It names the rule and the result, never the key. */
function markSpan(event: FloodgateEvent): void {
  const isMarked = event.type === "limited" || event.type === "shadow-limited" || event.type === "degraded";
  if (!isMarked && !(event.type === "missing-key" && event.rejected)) return;
  trace.getActiveSpan()?.addEvent("floodgate.rate_limiting", {
    "floodgate.rate_limiting.rule": event.name,
    "floodgate.rate_limiting.result": event.type === "missing-key" ? event.type : resultOf(event),
  });
}
