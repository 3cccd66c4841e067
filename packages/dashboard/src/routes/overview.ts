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
    rules: withGone(
      firstOf(
        reports,
        ({ rules }) => rules,
        ({ name }) => name,
      ),
      totals,
    ),
    totals,
    top: {
      byRequests: topOf(
        reports.map(({ requests }) => requests),
        names,
        nowMs,
      ),
      byRejections: topOf(
        reports.map(({ rejections }) => rejections),
        names,
        nowMs,
      ),
    },
    stores: storesOf(reports.flatMap(({ stores }) => stores)),
    sources: firstOf(reports, ({ sources }) => sources, sourceIdentity),
    instances: reports.map(({ instance }, i) => ({ ...instance, self: i === 0 })),
  };
}

/** All items of the first report, and those of the others that it lacks. */
function firstOf<T>(reports: readonly Report[], itemsOf: (report: Report) => readonly T[], identity: (item: T) => string): T[] {
  const known = new Set<string>();
  return reports.flatMap((report) => {
    const fresh = itemsOf(report).filter((item) => !known.has(identity(item)));
    for (const item of fresh) known.add(identity(item));
    return fresh;
  });
}

function sourceIdentity({ name, version, refused }: SourceInfo): string {
  return JSON.stringify([name, version, refused?.reason]);
}

/** Rules that have counts and do not exist any more. */
function withGone(rules: readonly RuleInfo[], totals: readonly RuleTotals[]): RuleInfo[] {
  const known = new Set(rules.map(({ name }) => name));
  const gone = totals.filter(({ rule }) => rule !== wholeRequests && !known.has(rule));
  return [...rules, ...gone.map(({ rule }): RuleInfo => ({ name: rule, kind: "gone", mode: "enforce", policy: "", plans: [] }))];
}

function sumTotals(all: readonly RuleTotals[]): RuleTotals[] {
  const sums = new Map<string, RuleTotals>();
  for (const totals of all) {
    const sum = sums.get(totals.rule);
    sums.set(totals.rule, sum === undefined ? totals : added(sum, totals));
  }
  return [...sums.values()];
}

function added(a: RuleTotals, b: RuleTotals): RuleTotals {
  return {
    rule: a.rule,
    counts: addCounts(a.counts, b.counts),
    units: { asked: a.units.asked + b.units.asked, charged: a.units.charged + b.units.charged },
    bans: a.bans + b.bans,
  };
}

function topOf(reports: readonly KeyReport[], names: KeyNames, nowMs: number): TopList {
  const summaries = reports.map(({ summary }) => summary);
  // A sketch of another process is published with fewer counters.
  const counters = Math.min(...summaries.map((summary) => summary.counters));
  const { total, keys } = mergeSummaries(summaries, counters);
  return {
    sinceMs: Math.min(...reports.map(({ sinceMs }) => sinceMs)),
    total,
    counters,
    keys: keys.slice(0, mostTop).map(({ rule, key, count, error, blocked }) => {
      const shown = { rule, key: names.shown(key), id: names.idOf(key), count, error };
      return blocked !== undefined && blocked.untilMs > nowMs ? { ...shown, blocked } : shown;
    }),
  };
}

/** How often a key was rejected in about the last hour. A key that the full sketches do not know may have been up to their smallest count. */
export function rejectionsOf(reports: readonly Report[], rule: string, key: string): NonNullable<KeyRuleState["rejections"]> {
  const { counters, keys } = mergeSummaries(
    reports.map(({ rejections }) => rejections.summary),
    Math.min(...reports.map(({ rejections }) => rejections.summary.counters)),
  );
  const least = keys.length < counters ? 0 : (keys.at(-1)?.count ?? 0);
  const { count, error } = keys.find((known) => known.rule === rule && known.key === key) ?? { count: least, error: least };
  return { count, error, sinceMs: Math.min(...reports.map(({ rejections }) => rejections.sinceMs)) };
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
