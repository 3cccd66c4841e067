import { observe } from "@floodgate/core";
import { invalidOption } from "@floodgate/core/rules";
import {
  Counter,
  Gauge,
  register as globalRegistry,
  type Metric as RegisteredMetric,
  type Registry,
  type RegistryContentType,
} from "prom-client";
import { BucketHistogram } from "./bucket-histogram.js";
import { readCurrentValues } from "./current-values.js";
import { type Exporter, type MetricsOptions, maxRulesOf, onePerTarget } from "./exporter.js";
import {
  type AttributeName,
  type CounterId,
  type HistogramId,
  histogramIds,
  type InstrumentId,
  instruments,
  type NowId,
  prometheusLabel,
  prometheusName,
} from "./instruments.js";
import { Measurements } from "./measurements.js";
import type { Attributes, Total } from "./series.js";

export type { MetricsOptions } from "./exporter.js";

const useExporter = onePerTarget();

/**
 * Measures all of Floodgate in this process, whatever was made before or comes later, into a registry of prom-client.
 *
 *     prometheus();
 *     app.get("/metrics", async (req, res) => res.type(register.contentType).send(await register.metrics()));
 *
 * A second call with the same registry adds nothing: there is one set of metrics, and each request counts once. The options of the first
 * call hold.
 * @param register default: prom-client's global registry.
 * @returns a function that stops it and removes its metrics from the registry. After several calls with one registry, each must be stopped.
 * @throws FloodgateError `FLOODGATE_INVALID_OPTION` unless it is given a registry; or if the registry has metrics with these names already,
 * of another copy of this package, for example.
 */
export function prometheus(register: Registry<RegistryContentType> = globalRegistry, options: MetricsOptions = {}): () => void {
  const maxRules = maxRulesOf("prometheus", options, [], "prometheus(register, { maxRules: 500 })");
  checkRegistry(register);
  return useExporter(register, () => startExporter(register, maxRules));
}

function startExporter(registry: Registry<RegistryContentType>, maxRules: number): Exporter {
  const histograms = {} as Record<HistogramId, BucketHistogram>;
  for (const id of histogramIds) {
    const { description, buckets = [] } = instruments[id];
    histograms[id] = new BucketHistogram({ name: prometheusName(instruments[id]), help: description, bounds: buckets });
  }
  const measurements = new Measurements((id, attributes) => histograms[id].recorder(labelsOf(attributes)), maxRules);
  const metrics = (Object.keys(instruments) as InstrumentId[]).map((id) => {
    const metric = histograms[id as HistogramId] ?? metricOf(id as CounterId | NowId, measurements);
    return { name: prometheusName(instruments[id]), metric: metric as unknown as RegisteredMetric };
  });
  /** Registers all metrics, or none. The app may have cleared its registry since the last time. */
  const register = (): void => {
    for (const { name, metric } of metrics) {
      const known = registry.getSingleMetric(name);
      if (known !== undefined && known !== metric) throw nameTaken(name);
    }
    for (const { name, metric } of metrics) {
      if (registry.getSingleMetric(name) !== undefined) continue;
      // In its OpenMetrics format, prom-client cuts `_total` off the metric's own name.
      registry.registerMetric(Object.assign(metric, { name }));
    }
  };
  register();
  const stopObserving = observe((event) => measurements.add(event));
  return {
    startAgain: register,
    stop() {
      stopObserving();
      for (const { name, metric } of metrics) if (registry.getSingleMetric(name) === metric) registry.removeSingleMetric(name);
    },
  };
}

function metricOf(id: CounterId | NowId, measurements: Measurements): Counter | Gauge {
  const { description, attributes, kind } = instruments[id];
  const config = { name: prometheusName(instruments[id]), help: description, labelNames: attributes.map(prometheusLabel), registers: [] };
  if (kind === "counter") return new Counter({ ...config, collect: addTotals(() => measurements.totals(id as CounterId)) });
  return new Gauge({
    ...config,
    // In a cluster, numbers of workers add up, but a limit is the same in each.
    aggregator: kind === "sum" ? "sum" : "max",
    collect() {
      this.reset();
      // A metric without labels is 0 after that, and not unknown.
      if (attributes.length === 0) this.remove();
      const numbers = readCurrentValues((name) => measurements.ruleOf(name))[id as NowId];
      for (const { attributes, value } of numbers) this.set(labelsOf(attributes), value);
    },
  });
}

/** Adds what has been counted since the last time, so that the registry can be reset as usual. */
function addTotals(totals: () => Iterable<Total>): (this: Counter) => void {
  const reported = new Map<Total, number>();
  return function () {
    for (const total of totals()) {
      this.inc(labelsOf(total.attributes), total.value - (reported.get(total) ?? 0));
      reported.set(total, total.value);
    }
  };
}

function labelsOf(attributes: Attributes): Record<string, string> {
  return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [prometheusLabel(name as AttributeName), value]));
}

function checkRegistry(register: unknown): void {
  if (typeof (register as Partial<Registry> | null)?.registerMetric === "function") return;
  throw invalidOption(
    `prometheus takes a registry of prom-client, but was given ${register === null ? "null" : `a value of type ${typeof register}`}. Write prometheus(), or prometheus(new Registry()); options come second.`,
  );
}

function nameTaken(name: string): Error {
  return invalidOption(
    `prometheus: the registry already has another metric named ${name}. Is @floodgate/metrics installed twice? npm ls @floodgate/metrics shows it. Else give it a registry of its own: prometheus(new Registry()).`,
  );
}
