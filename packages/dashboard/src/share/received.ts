import type { KeyBlock } from "@floodgate/core/store";
import { maxListed } from "../collect/in-use.js";
import { counters } from "../collect/recent-keys.js";
import type { KeyReport, Report, StoreReport } from "../collect/report.js";
import { maxExtra, ranges } from "../collect/ring.js";
import type { Counter, Summary } from "../collect/sketch.js";
import {
  type Burst,
  type Counts,
  type History,
  type Range,
  type RuleHistory,
  type RuleInfo,
  results,
  type SourceInfo,
} from "../contract.js";

// What stands in Redis may be of a broken process, of another version, or of an attacker. Nothing of it is taken over as it is: each reader
// answers a value of its type and of bounded size, or throws. What is not a number counts as 0.

type Read<T> = (value: unknown) => T;

/** Longer texts are not parsed. A process with 200 rules writes less than one megabyte. */
const maxCharacters = 4_000_000;
const maxText = 300;
const maxReason = 2000;
const maxPlans = 100;
const maxCodes = 60;
const latencyBuckets = 64;

/** An object with these fields. What is undefined is left out. */
function record<T extends object>(fields: { readonly [Name in keyof T]-?: Read<T[Name]> }): Read<T> {
  const readers = Object.entries<Read<unknown>>(fields);
  return (value) => {
    const own = object(value);
    return Object.fromEntries(
      readers.map(([name, read]) => [name, read(own[name])] as const).filter(([, read]) => read !== undefined),
    ) as T;
  };
}

function object(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new TypeError("not an object");
}

function optional<T>(read: Read<T>): Read<T> {
  return (value) => (value === undefined ? (undefined as T) : read(value));
}

function list<T>(most: number, read: Read<T>): Read<T[]> {
  return (value) => {
    if (Array.isArray(value)) return value.slice(0, most).map((each) => read(each));
    throw new TypeError("not a list");
  };
}

function wordsOf(most: number): Read<string> {
  return (value) => {
    if (typeof value === "string") return value.slice(0, most);
    throw new TypeError("not a text");
  };
}

const words = wordsOf(maxText);

function oneOf<T extends string>(...known: readonly T[]): Read<T> {
  return (value) => {
    const found = known.find((each) => each === value);
    if (found !== undefined) return found;
    throw new TypeError("not a known word");
  };
}

/** Counts and times are not negative. The cap keeps the sum of many exact. */
function number(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.min(value, 2 ** 44) : 0;
}

const counts: Read<Counts> = (value) => {
  const own = object(value);
  return Object.fromEntries(results.map((result) => [result, number(own[result])]).filter(([, count]) => count !== 0));
};

const keys: Read<KeyReport> = record<KeyReport>({
  sinceMs: number,
  summary: (value) => {
    const block = record<KeyBlock>({ kind: oneOf("block", "ban"), untilMs: number });
    const key = record<Counter>({ rule: words, key: words, count: number, error: number, blocked: optional(block) as Read<KeyBlock> });
    const read = record<Summary>({ counters: number, total: number, keys: list(counters, key) })(value);
    return {
      ...read,
      counters: Math.min(counters, Math.max(1, Math.floor(read.counters))),
      keys: read.keys.map((each) => ({ ...each, error: Math.min(each.error, each.count) })),
    };
  },
});

const report = record<Report>({
  instance: record({ id: words, name: words, sinceMs: number, perSecond: number }),
  rules: list(
    maxListed,
    record<RuleInfo>({
      name: words,
      kind: oneOf("rule", "limiter", "gone"),
      mode: oneOf("enforce", "shadow"),
      policy: words,
      match: optional(words),
      key: optional(words),
      plans: list(maxPlans, record({ name: words, policy: words })),
      ban: optional(words),
      source: optional(words),
      version: optional(words),
    }),
  ),
  totals: list(maxListed, record({ rule: words, counts, units: record({ asked: number, charged: number }), bans: number })),
  requests: keys,
  rejections: keys,
  stores: list(
    maxListed,
    record<StoreReport>({
      id: words,
      kind: words,
      rules: list(maxListed, words),
      breaker: optional(oneOf("closed", "open", "half-open")),
      size: optional(number),
      latencies: record({ counts: list(latencyBuckets, number), maxMs: number }),
      errors: list(maxCodes, record({ code: words, count: number })),
      evictions: number,
    }),
  ),
  sources: list(
    maxListed,
    record<SourceInfo>({
      id: words,
      name: words,
      version: optional(words),
      refused: optional(record({ atMs: number, reason: wordsOf(maxReason) })),
    }),
  ),
});

const minute = (value: unknown): number => Math.floor(number(value) / 60_000) * 60_000;
const burst = record<Burst>({ minuteMs: minute, secondMs: number, count: number, atMost: number, limited: number, inMinute: number });

function history(range: Range, value: unknown): History {
  const { startMs: start, stepMs, rules, bursts } = object(value);
  const startMs = number(start);
  if (stepMs !== ranges[range].stepMs || startMs % stepMs !== 0) throw new TypeError("not the steps of this range");
  const points = ranges[range].points + maxExtra;
  const series: Read<RuleHistory["series"]> = (each) => {
    const own = object(each);
    return Object.fromEntries(results.filter((name) => own[name] !== undefined).map((name) => [name, list(points, number)(own[name])]));
  };
  return {
    range,
    startMs,
    stepMs,
    points,
    rules: list(maxListed, record<RuleHistory>({ rule: words, series }))(rules),
    bursts: list(ranges.day.points + maxExtra, burst)(bursts),
  };
}

/** The report of another process; undefined if it is no report. */
export function receivedReport(text: string): Report | undefined {
  return received(text, report);
}

/** What another process has counted in a range; undefined if it is no history of it. */
export function receivedHistory(range: Range, text: string): History | undefined {
  return received(text, (value) => history(range, value));
}

function received<T>(text: string, read: Read<T>): T | undefined {
  if (text.length > maxCharacters) return undefined;
  try {
    return read(JSON.parse(text));
  } catch {
    return undefined;
  }
}
