import { FloodgateError, observe } from "@floodgate/core";
import {
  Counter,
  Gauge,
  register as globalRegistry,
  type Metric as RegisteredMetric,
  type Registry,
  type RegistryContentType,
} from "prom-client";
import { BucketHistogram } from "./bucket-histogram.js";
import { type MetricsOptions, maxRulesOf, onePerTarget, type Running } from "./exporter.js";
import {
  type AttributeName,
  type CounterId,
  type HistogramId,
  type InstrumentId,
  instruments,
  type NowId,
  prometheusLabel,
  prometheusName,
} from "./instruments.js";
import { Measurements } from "./measurements.js";
import { readNumbers } from "./numbers.js";
import type { Attributes, Recorder, Total } from "./series.js";

export type { MetricsOptions } from "./exporter.js";

const useExporter = onePerTarget<PrometheusExporter>();

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
  return useExporter(
    register,
    () => new PrometheusExporter(register, maxRules),
    // The app may have cleared its registry meanwhile.
    (exporter) => exporter.register(),
  );
}

type Metric = Counter | Gauge | BucketHistogram;

class PrometheusExporter implements Running {
  readonly #registry: Registry<RegistryContentType>;
  readonly #metrics: ReadonlyMap<InstrumentId, Metric>;
  readonly #measurements: Measurements;
  readonly #stopObserving: () => void;

  constructor(registry: Registry<RegistryContentType>, maxRules: number) {
    this.#registry = registry;
    this.#metrics = new Map((Object.keys(instruments) as InstrumentId[]).map((id) => [id, this.#metricOf(id)]));
    this.register();
    this.#measurements = new Measurements((id, attributes) => this.#recorder(id, attributes), maxRules);
    this.#stopObserving = observe(this.#measurements.add);
  }

  /** Registers all metrics, or none. */
  register(): void {
    const metrics = [...this.#metrics].map(([id, metric]) => ({ name: prometheusName(instruments[id]), metric }));
    for (const { name, metric } of metrics) {
      const known = this.#registry.getSingleMetric(name);
      if (known !== undefined && known !== metric) throw nameTaken(name);
    }
    for (const { name, metric } of metrics) {
      if (this.#registry.getSingleMetric(name) !== undefined) continue;
      // In its OpenMetrics format, prom-client cuts `_total` off the metric's own name.
      this.#registry.registerMetric(Object.assign(metric, { name }) as RegisteredMetric);
    }
  }

  stop(): void {
    this.#stopObserving();
    for (const [id, metric] of this.#metrics) {
      const name = prometheusName(instruments[id]);
      if (this.#registry.getSingleMetric(name) === metric) this.#registry.removeSingleMetric(name);
    }
  }

  #metricOf(id: InstrumentId): Metric {
    const { description, attributes, kind, buckets = [] } = instruments[id];
    const config = {
      name: prometheusName(instruments[id]),
      help: description,
      labelNames: attributes.map(prometheusLabel),
      registers: [],
    };
    if (kind === "histogram") return new BucketHistogram({ ...config, bounds: buckets });
    if (kind === "counter") return new Counter({ ...config, collect: this.#countInto(id as CounterId) });
    // In a cluster, numbers of workers add up, but a limit is the same in each.
    return new Gauge({ ...config, aggregator: kind === "sum" ? "sum" : "max", collect: this.#setIn(id as NowId) });
  }

  #recorder(id: HistogramId, attributes: Attributes): Recorder {
    return (this.#metrics.get(id) as BucketHistogram).recorder(labelsOf(attributes));
  }

  /** Adds what has been counted since the last time, so that the registry can be reset as usual. */
  #countInto(id: CounterId): (this: Counter) => void {
    const told = new Map<Total, number>();
    const totals = () => this.#measurements.totals(id);
    return function () {
      for (const total of totals()) {
        this.inc(labelsOf(total.attributes), total.value - (told.get(total) ?? 0));
        told.set(total, total.value);
      }
    };
  }

  #setIn(id: NowId): (this: Gauge) => void {
    const readings = () => readNumbers((name) => this.#measurements.ruleOf(name))[id];
    return function () {
      this.reset();
      // A metric without labels is 0 after that, and not unknown.
      if (instruments[id].attributes.length === 0) this.remove();
      for (const { attributes, value } of readings()) this.set(labelsOf(attributes), value);
    };
  }
}

const labels = new WeakMap<Attributes, Record<string, string>>();

/** The labels of a series. One object for each, because prom-client keeps it. */
function labelsOf(attributes: Attributes): Record<string, string> {
  let known = labels.get(attributes);
  if (known === undefined) {
    known = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [prometheusLabel(name as AttributeName), value]));
    labels.set(attributes, known);
  }
  return known;
}

function checkRegistry(register: unknown): void {
  if (typeof (register as Partial<Registry> | null)?.registerMetric === "function") return;
  throw new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `prometheus takes a registry of prom-client, but was given ${register === null ? "null" : `a value of type ${typeof register}`}. Write prometheus(), or prometheus(new Registry()); options come second.`,
  );
}

function nameTaken(name: string): FloodgateError {
  return new FloodgateError(
    "FLOODGATE_INVALID_OPTION",
    `prometheus: the registry already has another metric named ${name}. Is @floodgate/metrics installed twice? npm ls @floodgate/metrics shows it. Else give it a registry of its own: prometheus(new Registry()).`,
  );
}
