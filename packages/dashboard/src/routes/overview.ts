import { latencyOf, mergeHistograms } from "../collect/latencies.js";
import type { KeyReport, Report, StoreReport } from "../collect/report.js";
import { addCounts } from "../collect/rule-counts.js";
import { mergeSummaries } from "../collect/sketch.js";
import {
  type Capabilities,
  type KeyRuleState,
  type Overview,
  type RuleInfo,
  type RuleTotals,
  type Scope,
  type SourceInfo,
  type StoreInfo,
  type TopList,
  wholeRequests,
} from "../contract.js";
import type { KeyNames } from "./key-text.js";

const mostTop = 20;

export interface OverviewParts {
  readonly title: string;
  readonly nowMs: number;
  readonly capabilities: Capabilities;
  readonly scope: Scope;
  /** This process's first. */
  readonly reports: readonly [Report, ...Report[]];
  readonly names: KeyNames;
}

/** One overview of the reports of one or several processes. */
export function overviewOf({ title, nowMs, capabilities, scope, reports, names }: OverviewParts): Overview {
  const totals = sumTotals(reports.flatMap((report) => report.totals));
  return {
    title,
    nowMs,
    capabilities,
    scope,
    rules: withGone(firstOf(reports, "rules", ruleIdentity), totals),
    totals,
    top: { byRequests: topOf(reports, "requests", names, nowMs), byRejections: topOf(reports, "rejections", names, nowMs) },
    stores: storesOf(reports.flatMap(({ stores }) => stores)),
    sources: firstOf(reports, "sources", sourceIdentity),
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

const ruleIdentity = ({ name }: RuleInfo): string => name;
const sourceIdentity = ({ name, version, refused }: SourceInfo): string => JSON.stringify([name, version, refused?.reason]);

/** Rules that have counts and do not exist any more. */
function withGone(rules: readonly RuleInfo[], totals: readonly RuleTotals[]): RuleInfo[] {
  const known = new Set(rules.map(({ name }) => name));
  const gone = totals.filter(({ rule }) => rule !== wholeRequests && !known.has(rule));
  return [...rules, ...gone.map(({ rule }): RuleInfo => ({ name: rule, kind: "gone", mode: "enforce", policy: "", plans: [] }))];
}

function sumTotals(all: readonly RuleTotals[]): RuleTotals[] {
  const sums = new Map<string, RuleTotals>();
  for (const { rule, counts, units, bans } of all) {
    const sum = sums.get(rule) ?? { counts: {}, units: { asked: 0, charged: 0 }, bans: 0 };
    sums.set(rule, {
      rule,
      counts: addCounts(sum.counts, counts),
      units: { asked: sum.units.asked + units.asked, charged: sum.units.charged + units.charged },
      bans: sum.bans + bans,
    });
  }
  return [...sums.values()];
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

function topOf(reports: readonly Report[], list: KeyList, names: KeyNames, nowMs: number): TopList {
  const { sinceMs, summary } = mergedKeys(reports, list);
  const keys = summary.keys.slice(0, mostTop).map(({ rule, key, count, error, blocked }) => {
    const shown = { rule, key: names.shown(key), id: names.idOf(key), count, error };
    return blocked !== undefined && blocked.untilMs > nowMs ? { ...shown, blocked } : shown;
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

const breakerStates = ["closed", "half-open", "open"] as const;

/** Stores over the same data, and memory stores of the same rules, are one line. */
function storesOf(all: readonly StoreReport[]): StoreInfo[] {
  const byId = new Map<string, StoreReport[]>();
  for (const store of all) byId.set(store.id, [...(byId.get(store.id) ?? []), store]);
  return [...byId].map(([id, stores]) => {
    const breakers = stores.flatMap(({ breaker }) => (breaker === undefined ? [] : [breaker]));
    const sizes = stores.flatMap(({ size }) => (size === undefined ? [] : [size]));
    const latency = latencyOf(mergeHistograms(stores.map(({ latencies }) => latencies)));
    const errors = new Map<string, number>();
    for (const { code, count } of stores.flatMap((store) => store.errors)) errors.set(code, (errors.get(code) ?? 0) + count);
    const worst = Math.max(...breakers.map((breaker) => breakerStates.indexOf(breaker)));
    return {
      id,
      kind: (stores[0] as StoreReport).kind,
      rules: [...new Set(stores.flatMap(({ rules }) => rules))],
      ...(breakers.length > 0 && { breaker: breakerStates[worst] as (typeof breakerStates)[number] }),
      ...(sizes.length > 0 && { size: sizes.reduce((sum, size) => sum + size, 0) }),
      ...(latency !== undefined && { latency }),
      errors: [...errors].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count),
      evictions: stores.reduce((sum, { evictions }) => sum + evictions, 0),
    };
  });
}
