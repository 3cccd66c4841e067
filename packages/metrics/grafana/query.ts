import { type AttributeName, type InstrumentId, instruments, prometheusLabel, prometheusName } from "../src/index.js";

// Queries over the table of metrics: a metric or a label that does not exist is an error here, not an empty panel in Grafana.

/** What a metric's labels must be: `{ result: "limited|missing-key" }`. The words are the ones that the metric's description explains. */
type Labels = Readonly<Partial<Record<AttributeName, string>>>;

const rejections = "limited|blocked|banned|missing-key|failed-closed|fallback-limited";

/** Results of requests that a rule decided. The others are exempt, or skipped for lack of a key. */
export const decided: Labels = { result: `allowed|delayed|shadow-limited|failed-open|fallback-allowed|${rejections}` };

export const rejected: Labels = { result: rejections };

/** Requests that were rejected. A path that two servers may read in two ways is rejected before any decision. */
export const rejectedRequests: Labels = { result: `${rejections}|ambiguous-path` };

/** Results of decisions and requests without the store. */
export const withoutStore: Labels = { result: "failed-open|failed-closed|fallback-allowed|fallback-limited" };

/** Results of requests that a rule counted and let through. */
export const passed: Labels = { result: "allowed|delayed" };

export const byRule: readonly string[] = ["rule"];

/** The series of a metric that the dashboard's variables and these labels choose. */
export function series(id: InstrumentId, labels: Labels = {}, suffix: "" | "_bucket" | "_sum" | "_count" = ""): string {
  const instrument = instruments[id];
  for (const label of Object.keys(labels)) {
    if (!instrument.attributes.includes(label as AttributeName)) throw new Error(`${instrument.name} has no attribute ${label}.`);
  }
  const wanted = Object.entries(labels).map(
    ([label, words]) => `${prometheusLabel(label as AttributeName)}${words.includes("|") ? "=~" : "="}"${words}"`,
  );
  const variables = ["job", "instance", ...(instrument.attributes.includes("rule") ? ["rule"] : [])].map((name) => `${name}=~"$${name}"`);
  return `${prometheusName(instrument)}${suffix}{${[...variables, ...wanted].join(",")}}`;
}

/** How much a counter grew per second, over all processes; `by` names the labels that stay apart. */
export function perSecond(id: InstrumentId, labels: Labels = {}, by: readonly string[] = []): string {
  return sum(`rate(${series(id, labels)}[$__rate_interval])`, by);
}

/** A number now, over all processes. */
export function now(id: InstrumentId, labels: Labels = {}, by: readonly string[] = []): string {
  return sum(series(id, labels), by);
}

export function percentile(share: number, id: InstrumentId, labels: Labels = {}): string {
  return `histogram_quantile(${share}, ${sum(`rate(${series(id, labels, "_bucket")}[$__rate_interval])`, ["le"])})`;
}

/** Half, 95 % and 99 % of a histogram, by legend. */
export function percentiles(id: InstrumentId, labels: Labels = {}): Record<string, string> {
  return Object.fromEntries([0.5, 0.95, 0.99].map((part) => [`${part * 100} % are below`, percentile(part, id, labels)]));
}

export function mean(id: InstrumentId, labels: Labels = {}): string {
  const [total, count] = (["_sum", "_count"] as const).map((suffix) => sum(`rate(${series(id, labels, suffix)}[$__rate_interval])`, []));
  return `${total} / (${count} > 0)`;
}

/** A part of a whole. Nothing where the whole is zero, for such a share means nothing. */
export function share(part: string, whole: string): string {
  return `${part} / (${whole} > 0)`;
}

/** Zero instead of "no data": for what has not happened yet. */
export function orZero(query: string): string {
  return `${query} or vector(0)`;
}

function sum(query: string, by: readonly string[]): string {
  return by.length === 0 ? `sum(${query})` : `sum by (${by.join(", ")}) (${query})`;
}
