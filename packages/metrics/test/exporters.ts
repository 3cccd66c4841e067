import { type AttributeName, type Instrument, type InstrumentId, instruments, prometheusLabel, prometheusName } from "@floodgate/metrics";
import { openTelemetry } from "@floodgate/metrics/opentelemetry";
import { prometheus } from "@floodgate/metrics/prometheus";
import {
  AggregationTemporality,
  DataPointType,
  type Histogram,
  MeterProvider,
  type MetricData,
  MetricReader,
} from "@opentelemetry/sdk-metrics";
import { type MetricValue, Registry } from "prom-client";
import { expect } from "vitest";

/** A histogram: what is in each bucket, not below it. The last bucket has no bound. */
export interface Distribution {
  readonly sum: number;
  readonly count: number;
  readonly buckets: readonly number[];
}

/** The series of one metric, by the values of its attributes: `api limited`. Series at 0 are left out. */
export type Series = Record<string, number | Distribution>;
/** All metrics that have series. */
export type Figures = { [Id in InstrumentId]?: Series };

/** Both exporters at work, each with a backend of its own. */
export interface Exporters {
  readonly registry: Registry;
  readonly provider: MeterProvider;
  prometheus(): Promise<Figures>;
  openTelemetry(): Promise<Figures>;
  stop(): Promise<void>;
}

const ids = Object.keys(instruments) as InstrumentId[];

export function startExporters(options: { maxRules?: number } = {}): Exporters {
  const registry = new Registry();
  const { provider, read } = meterProvider();
  const stops = [prometheus(registry, options), openTelemetry({ meterProvider: provider, ...options })];
  return {
    registry,
    provider,
    prometheus: () => prometheusFigures(registry),
    openTelemetry: read,
    stop: async () => {
      for (const stop of stops) stop();
      await provider.shutdown();
    },
  };
}

/** Collects when it is asked. */
class Reader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

export function meterProvider(temporality = AggregationTemporality.CUMULATIVE): { provider: MeterProvider; read(): Promise<Figures> } {
  const reader = new Reader({ aggregationTemporalitySelector: () => temporality });
  return {
    provider: new MeterProvider({ readers: [reader] }),
    read: async () => {
      const { resourceMetrics, errors } = await reader.collect();
      expect(errors).toEqual([]);
      const metrics = resourceMetrics.scopeMetrics.flatMap(({ scope, metrics }) => (scope.name === "@floodgate/metrics" ? metrics : []));
      return figuresOf((instrument) => openTelemetrySeries(instrument, metrics));
    },
  };
}

export async function prometheusFigures(registry: Registry): Promise<Figures> {
  const metrics = (await registry.getMetricsAsJSON()) as unknown as readonly PrometheusMetric[];
  return figuresOf((instrument) => prometheusSeries(instrument, metrics));
}

interface PrometheusMetric {
  readonly name: string;
  readonly values: readonly (MetricValue<string> & { readonly metricName?: string })[];
}

function figuresOf(seriesOf: (instrument: Instrument) => Series): Figures {
  const figures: Figures = {};
  for (const id of ids) {
    const series = Object.entries(seriesOf(instruments[id])).filter(([, value]) => (typeof value === "number" ? value : value.count) !== 0);
    if (series.length > 0) figures[id] = Object.fromEntries(series);
  }
  return figures;
}

function keyOf({ attributes }: Instrument, value: (attribute: AttributeName) => unknown): string {
  return attributes.map(value).join(" ").trimEnd();
}

function openTelemetrySeries(instrument: Instrument, metrics: readonly MetricData[]): Series {
  const series: Series = {};
  for (const { descriptor, dataPointType, dataPoints } of metrics) {
    if (descriptor.name !== instrument.name) continue;
    for (const { attributes, value } of dataPoints) {
      const key = keyOf(instrument, (attribute) => attributes[attribute]);
      series[key] = dataPointType === DataPointType.HISTOGRAM ? distribution(value as Histogram) : (value as number);
    }
  }
  return series;
}

function distribution({ sum = 0, count, buckets }: Histogram): Distribution {
  return { sum: rounded(sum), count, buckets: buckets.counts };
}

function prometheusSeries(instrument: Instrument, metrics: readonly PrometheusMetric[]): Series {
  const name = prometheusName(instrument);
  const series: Series = {};
  const below = new Map<string, number>();
  for (const { labels, value, metricName } of metrics.find((metric) => metric.name === name)?.values ?? []) {
    const key = keyOf(instrument, (attribute) => labels[prometheusLabel(attribute)]);
    if (instrument.kind !== "histogram") {
      series[key] = value;
      continue;
    }
    const known = (series[key] as Distribution | undefined) ?? { sum: 0, count: 0, buckets: [] };
    if (metricName === `${name}_bucket`) {
      // Buckets of Prometheus hold those below too.
      series[key] = { ...known, buckets: [...known.buckets, value - (below.get(key) ?? 0)] };
      below.set(key, value);
    } else {
      series[key] = { ...known, ...(metricName === `${name}_sum` ? { sum: rounded(value) } : { count: value }) };
    }
  }
  return series;
}

/** Sums of fractions depend on their order in the last bits. */
function rounded(sum: number): number {
  return Number(sum.toPrecision(12));
}
