import { type Instrument, instruments, prometheusLabel, prometheusName } from "../src/index.js";

/** A metric as a query asks for it. */
export interface UsedMetric {
  /** With the suffix of a histogram's series, if it has one. */
  readonly name: string;
  readonly labels: readonly { readonly label: string; readonly words: string }[];
}

/** Floodgate's metrics in a query. Leaves out recorded series, which have a colon in their name. */
export function metricsIn(query: string): UsedMetric[] {
  return Array.from(query.matchAll(/(?<![\w:])(floodgate_\w+)(?!:)\b(?:\{([^}]*)\})?/g), ([, name = "", selector = ""]) => ({
    name,
    labels: Array.from(selector.matchAll(/(\w+)\s*[=!]~?\s*"([^"]*)"/g), ([, label = "", words = ""]) => ({ label, words })),
  }));
}

/**
 * The instrument that has a series.
 * @throws Error if the table has no such metric.
 */
export function instrumentOf(name: string): Instrument {
  const instrument = Object.values(instruments).find((one) => namesOf(one).includes(name));
  if (instrument === undefined) throw new Error(`No metric has the series ${name}.`);
  return instrument;
}

export function labelsOf({ attributes, kind }: Instrument): string[] {
  return [...attributes.map(prometheusLabel), ...(kind === "histogram" ? ["le"] : [])];
}

/** Whether a metric's description explains the value of a label, such as the result "limited". */
export function isExplained(label: string, word: string): boolean {
  const those = Object.values(instruments).filter((one) => labelsOf(one).includes(label));
  return those.some(({ description }) => new RegExp(`\\b${word}\\b`).test(description));
}

function namesOf(instrument: Instrument): string[] {
  const name = prometheusName(instrument);
  return instrument.kind === "histogram" ? ["_bucket", "_sum", "_count"].map((suffix) => name + suffix) : [name];
}
