import type { Recorder } from "./series.js";

type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName: string;
}

interface Buckets {
  readonly labels: Labels;
  /** How many values each bucket has, not those below it. The last one has no bound. */
  readonly counts: Float64Array;
  sum: number;
}

/**
 * A histogram for a registry of prom-client, which asks it for `get` and `reset` only. prom-client's own histogram makes objects and text
 * for each value. That would cost more than the rest of a decision's metrics.
 */
export class BucketHistogram {
  readonly type = "histogram";
  readonly aggregator = "sum";
  readonly name: string;
  readonly help: string;
  readonly #bounds: readonly number[];
  readonly #series: Buckets[] = [];

  constructor({ name, help, bounds }: { name: string; help: string; bounds: readonly number[] }) {
    this.name = name;
    this.help = help;
    this.#bounds = bounds;
  }

  /** Makes a series. It is called once for each set of labels. */
  recorder(labels: Labels): Recorder {
    const bounds = this.#bounds;
    const series: Buckets = { labels, counts: new Float64Array(bounds.length + 1), sum: 0 };
    this.#series.push(series);
    const { counts } = series;
    return (value) => {
      let bucket = 0;
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
      counts[bucket] = (counts[bucket] as number) + 1;
      series.sum += value;
    };
  }

  reset(): void {
    for (const series of this.#series) {
      series.counts.fill(0);
      series.sum = 0;
    }
  }

  async get(): Promise<{ name: string; help: string; type: "histogram"; aggregator: "sum"; values: Sample[] }> {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: this.#series.flatMap((series) => this.#valuesOf(series)) };
  }

  #valuesOf({ labels, counts, sum }: Buckets): Sample[] {
    let count = 0;
    const values: Sample[] = [];
    for (const [i, more] of counts.entries()) {
      count += more;
      values.push({ labels: { le: this.#bounds[i] ?? "+Inf", ...labels }, value: count, metricName: `${this.name}_bucket` });
    }
    values.push({ labels, value: sum, metricName: `${this.name}_sum` }, { labels, value: count, metricName: `${this.name}_count` });
    return values;
  }
}
