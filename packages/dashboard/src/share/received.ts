import { mostListed } from "../collect/in-use.js";
import { mostExtra, ranges } from "../collect/ranges.js";
import { counters } from "../collect/recent-keys.js";
import type { KeyReport, Report, StoreReport } from "../collect/report.js";
import {
  type Burst,
  type Counts,
  type History,
  type Range,
  type RuleInfo,
  type RuleTotals,
  results,
  type SourceInfo,
} from "../contract.js";

// What stands in Redis may be of a broken process, of another version, or of an attacker. Nothing of it is taken over as it is: each reader
// answers a value of its type and of bounded size, or throws. What is not a number counts as 0.

type Read<T> = (value: unknown) => T;

/** Longer texts are not parsed. A process with 200 rules writes less than one megabyte. */
const mostCharacters = 4_000_000;
const mostText = 300;
const mostReason = 2000;
const mostPlans = 100;
const mostSeconds = 20;
const mostCodes = 60;
const latencyBuckets = 64;

/** The report of another process; undefined if it is no report. */
export function receivedReport(text: string): Report | undefined {
  return received(text, report);
}

/** What another process has counted in a range; undefined if it is no history of it. */
export function receivedHistory(range: Range, text: string): History | undefined {
  return received(text, (value) => history(range, value));
}

function received<T>(text: string, read: Read<T>): T | undefined {
  if (text.length > mostCharacters) return undefined;
  try {
    return read(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function report(value: unknown): Report {
  const { instance, ...all } = object(value);
  const { id, name, sinceMs, perSecond } = object(instance);
  return {
    instance: { id: words(id), name: words(name), sinceMs: number(sinceMs), perSecond: number(perSecond) },
    rules: list(all["rules"], mostListed, rule),
    totals: list(all["totals"], mostListed, totals),
    requests: keys(all["requests"]),
    rejections: keys(all["rejections"]),
    stores: list(all["stores"], mostListed, store),
    sources: list(all["sources"], mostListed, source),
    recent: list(all["recent"], mostSeconds, (each) => {
      const { second, counts } = object(each);
      return { second: number(second), counts: list(counts, mostListed, ruleCounts) };
    }),
  };
}

const optional = ["algorithm", "match", "key", "ban", "source", "version"] as const;

function rule(value: unknown): RuleInfo {
  const { name, kind, mode, policy, plans, limit, ...more } = object(value);
  return {
    name: words(name),
    kind: oneOf(["rule", "limiter", "gone"], kind),
    mode: oneOf(["enforce", "shadow"], mode),
    policy: words(policy),
    ...(limit !== undefined && { limit: number(limit) }),
    ...Object.fromEntries(optional.flatMap((each) => (more[each] === undefined ? [] : [[each, words(more[each])]]))),
    plans: list(plans, mostPlans, (plan) => {
      const own = object(plan);
      return { name: words(own["name"]), policy: words(own["policy"]) };
    }),
  };
}

function totals(value: unknown): RuleTotals {
  const { rule, counts: own, units, bans } = object(value);
  const { asked, charged } = object(units);
  return { rule: words(rule), counts: counts(own), units: { asked: number(asked), charged: number(charged) }, bans: number(bans) };
}

function ruleCounts(value: unknown): { rule: string; counts: Counts } {
  const { rule, counts: own } = object(value);
  return { rule: words(rule), counts: counts(own) };
}

function counts(value: unknown): Counts {
  const own = object(value);
  return Object.fromEntries(results.map((result) => [result, number(own[result])]).filter(([, count]) => count !== 0));
}

function keys(value: unknown): KeyReport {
  const { sinceMs, summary } = object(value);
  const { counters: most, total, keys: own } = object(summary);
  return {
    sinceMs: number(sinceMs),
    summary: {
      counters: Math.min(counters, Math.max(1, Math.floor(number(most)))),
      total: number(total),
      keys: list(own, counters, (key) => {
        const { rule, key: name, count, error } = object(key);
        return { rule: words(rule), key: words(name), count: number(count), error: Math.min(number(error), number(count)) };
      }),
    },
  };
}

function store(value: unknown): StoreReport {
  const { id, kind, rules, breaker, size, latencies, errors, evictions } = object(value);
  const { counts: own, maxMs } = object(latencies);
  return {
    id: words(id),
    kind: words(kind),
    rules: list(rules, mostListed, words),
    ...(breaker !== undefined && { breaker: oneOf(["closed", "open", "half-open"], breaker) }),
    ...(size !== undefined && { size: number(size) }),
    latencies: { counts: list(own, latencyBuckets, number), maxMs: number(maxMs) },
    errors: list(errors, mostCodes, (error) => {
      const { code, count } = object(error);
      return { code: words(code), count: number(count) };
    }),
    evictions: number(evictions),
  };
}

function source(value: unknown): SourceInfo {
  const { id, name, version, refused } = object(value);
  const known = { id: words(id), name: words(name), ...(version !== undefined && { version: words(version) }) };
  if (refused === undefined) return known;
  const { atMs, reason } = object(refused);
  return { ...known, refused: { atMs: number(atMs), reason: words(reason, mostReason) } };
}

function history(range: Range, value: unknown): History {
  const { startMs: start, stepMs, rules, bursts } = object(value);
  const startMs = number(start);
  if (stepMs !== ranges[range].stepMs || startMs % stepMs !== 0) throw new TypeError("not the steps of this range");
  const points = ranges[range].points + mostExtra;
  return {
    range,
    startMs,
    stepMs,
    points,
    rules: list(rules, mostListed, (each) => {
      const { rule, series } = object(each);
      const own = object(series);
      const read = results.flatMap((result) => (own[result] === undefined ? [] : [[result, list(own[result], points, number)]]));
      return { rule: words(rule), series: Object.fromEntries(read) };
    }),
    bursts: list(bursts, ranges.day.points + mostExtra, (each): Burst => {
      const { minuteMs, secondMs, count, atMost, limited, inMinute } = object(each);
      return {
        minuteMs: Math.floor(number(minuteMs) / 60_000) * 60_000,
        secondMs: number(secondMs),
        count: number(count),
        atMost: number(atMost),
        limited: number(limited),
        inMinute: number(inMinute),
      };
    }),
  };
}

function object(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new TypeError("not an object");
}

function list<T>(value: unknown, most: number, read: Read<T>): T[] {
  if (Array.isArray(value)) return value.slice(0, most).map((each) => read(each));
  throw new TypeError("not a list");
}

function words(value: unknown, most: number = mostText): string {
  if (typeof value === "string") return value.slice(0, most);
  throw new TypeError("not a text");
}

function oneOf<T extends string>(known: readonly T[], value: unknown): T {
  const found = known.find((each) => each === value);
  if (found !== undefined) return found;
  throw new TypeError("not a known word");
}

/** Counts and times are not negative. The cap keeps the sum of many exact. */
function number(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.min(value, 2 ** 44) : 0;
}
