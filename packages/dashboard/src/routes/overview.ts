import { getOrMake } from "@floodgate/core/adapter";
import { latencyOf, mergeHistograms } from "../collect/latencies.js";
import type { KeyReport, Report, StoreReport } from "../collect/report.js";
import { addCounts } from "../collect/rule-counts.js";
import { mergeSummaries } from "../collect/sketch.js";
import {
  type KeyRuleState,
  type Overview,
  type RuleInfo,
  type RuleTotals,
  type StoreInfo,
  type TopList,
  wholeRequests,
} from "../contract.js";
import type { KeyLabels } from "./key-labels.js";

const maxTop = 20;

export interface OverviewParts extends Pick<Overview, "title" | "nowMs" | "capabilities" | "scope"> {
  /** This process's first. */
  readonly reports: readonly [Report, ...Report[]];
  readonly labels: KeyLabels;
}

/** One overview of the reports of one or several processes. */
export function overviewOf({ title, nowMs, capabilities, scope, reports, labels }: OverviewParts): Overview {
  const totals = sumTotals(reports.flatMap((report) => report.totals));
  return {
    title,
    nowMs,
    capabilities,
    scope,
    rules: withGone(
      firstOf(reports, "rules", ({ name }) => name),
      totals,
    ),
    totals,
    top: { byRequests: topOf(reports, "requests", labels, nowMs), byRejections: topOf(reports, "rejections", labels, nowMs) },
    stores: storesOf(reports.flatMap(({ stores }) => stores)),
    sources: firstOf(reports, "sources", ({ name, version, refused }) => JSON.stringify([name, version, refused?.reason])),
    instances: reports.map(({ instance }, i) => ({ ...instance, self: i === 0 })),
  };
}

/** All items of the first report, and those of the others that it lacks. */
function firstOf<List extends "rules" | "sources">(
  reports: readonly Report[],
  list: List,
  identity: (item: Report[List][number]) => string,
): Report[List][number][] {
  const known = new Set<string>();
  return reports.flatMap((report) => {
    const fresh = report[list].filter((item) => !known.has(identity(item)));
    for (const item of fresh) known.add(identity(item));
    return fresh;
  });
}

/** Rules that have counts and do not exist any more. */
function withGone(rules: readonly RuleInfo[], totals: readonly RuleTotals[]): RuleInfo[] {
  const known = new Set(rules.map(({ name }) => name));
  const gone = totals.filter(({ rule }) => rule !== wholeRequests && !known.has(rule));
  return [...rules, ...gone.map(({ rule }): RuleInfo => ({ name: rule, kind: "gone", mode: "enforce", policy: "", plans: [] }))];
}

function sumTotals(all: readonly RuleTotals[]): RuleTotals[] {
  return [...grouped(all, ({ rule }) => rule)].map(([rule, totals]) => ({
    rule,
    counts: totals.reduce((sum, { counts }) => addCounts(sum, counts), {}),
    units: { asked: sumOf(totals, ({ units }) => units.asked), charged: sumOf(totals, ({ units }) => units.charged) },
    bans: sumOf(totals, ({ bans }) => bans),
  }));
}

type KeyList = "requests" | "rejections";

/** The heaviest keys of all reports. A sketch of another process is published with fewer counters. */
function mergedKeys(reports: readonly Report[], list: KeyList): KeyReport {
  const summaries = reports.map((report) => report[list].summary);
  return {
    sinceMs: Math.min(...reports.map((report) => report[list].sinceMs)),
    summary: mergeSummaries(summaries, Math.min(...summaries.map(({ counters }) => counters))),
  };
}

function topOf(reports: readonly Report[], list: KeyList, labels: KeyLabels, nowMs: number): TopList {
  const { sinceMs, summary } = mergedKeys(reports, list);
  const keys = summary.keys.slice(0, maxTop).map(({ rule, key, count, error, blocked }) => {
    const isBlocked = blocked !== undefined && blocked.untilMs > nowMs;
    return { rule, key: labels.shown(key), id: labels.idOf(key), count, error, blocked: isBlocked ? blocked : undefined };
  });
  return { sinceMs, keys };
}

/** How often a key was rejected in about the last hour. A key that the full sketches do not know may have been up to their smallest count. */
export function rejectionsOf(reports: readonly Report[], rule: string, key: string): NonNullable<KeyRuleState["rejections"]> {
  const { sinceMs, summary } = mergedKeys(reports, "rejections");
  const least = summary.keys.length < summary.counters ? 0 : (summary.keys.at(-1)?.count ?? 0);
  const { count, error } = summary.keys.find((known) => known.rule === rule && known.key === key) ?? { count: least, error: least };
  return { count, error, sinceMs };
}

/** From none to the worst. */
const breakerStates = [undefined, "closed", "half-open", "open"] as const;

function grouped<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) getOrMake(groups, keyOf(item), () => []).push(item);
  return groups;
}

function sumOf<Item>(items: readonly Item[], numberOf: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + numberOf(item), 0);
}

/** Stores over the same data, and memory stores of the same rules, are one line. */
function storesOf(all: readonly StoreReport[]): StoreInfo[] {
  return [...grouped(all, ({ id }) => id)].map(([id, stores]) => {
    const worst = Math.max(...stores.map(({ breaker }) => breakerStates.indexOf(breaker)));
    const sizes = stores.map(({ size }) => size).filter((size) => size !== undefined);
    const errors = grouped(
      stores.flatMap((store) => store.errors),
      ({ code }) => code,
    );
    return {
      id,
      kind: (stores[0] as StoreReport).kind,
      rules: [...new Set(stores.flatMap(({ rules }) => rules))],
      breaker: breakerStates[worst],
      size: sizes.length > 0 ? sumOf(sizes, (size) => size) : undefined,
      latency: latencyOf(mergeHistograms(stores.map(({ latencies }) => latencies))),
      errors: [...errors].map(([code, each]) => ({ code, count: sumOf(each, ({ count }) => count) })).sort((a, b) => b.count - a.count),
      evictions: sumOf(stores, ({ evictions }) => evictions),
    };
  });
}
