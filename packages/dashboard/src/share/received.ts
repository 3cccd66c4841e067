import * as z from "zod/mini";
import { maxListed } from "../collect/in-use.js";
import { counters } from "../collect/recent-keys.js";
import type { KeyReport, Report } from "../collect/report.js";
import { maxExtra, ranges } from "../collect/ring.js";
import { type Counts, type History, type Range, type RuleHistory, results } from "../contract.js";

// What stands in Redis may be of a broken process, of another version, or of an attacker. Nothing of it is taken over as it is: all of it gets
// its type and a bounded size, or is refused. What is not a number counts as 0.

/** Longer texts are not parsed. A process with 200 rules writes less than one megabyte. */
const maxCharacters = 4_000_000;
const maxText = 300;
const maxReason = 2000;
const maxPlans = 100;
const maxCodes = 60;
const latencyBuckets = 64;

/** Counts and times are not negative. The cap keeps the sum of many exact. */
const numberOf = (value: unknown): number => (typeof value === "number" && value > 0 ? Math.min(value, 2 ** 44) : 0);

/** A type that is made of another. */
const made = <From extends z.ZodMiniType, To>(from: From, make: (value: z.output<From>) => To) => z.pipe(from, z.transform(make));

const number = made(z.unknown(), numberOf);
const array = z.custom<unknown[]>(Array.isArray);
const numbers = (most: number) => made(array, (values) => values.slice(0, most).map(numberOf));
const wordsOf = (most: number) => made(z.string(), (text) => text.slice(0, most));
const words = wordsOf(maxText);
const list = <Item extends z.ZodMiniType>(most: number, item: Item) =>
  z.pipe(
    made(array, (values) => values.slice(0, most)),
    z.array(item),
  );
const object = z.record(z.string(), z.unknown());

const counts = made(object, (own): Counts => {
  return Object.fromEntries(results.map((result) => [result, numberOf(own[result])]).filter(([, count]) => count !== 0));
});

const block = z.object({ kind: z.enum(["block", "ban"]), untilMs: number });
const key = z.object({ rule: words, key: words, count: number, error: number, blocked: z.exactOptional(block) });
const summary = made(z.object({ counters: number, total: number, keys: list(counters, key) }), (read) => ({
  ...read,
  counters: Math.min(counters, Math.max(1, Math.floor(read.counters))),
  keys: read.keys.map((each) => ({ ...each, error: Math.min(each.error, each.count) })),
}));
const keys: z.ZodMiniType<KeyReport> = z.object({ sinceMs: number, summary });

const report: z.ZodMiniType<Report> = z.object({
  instance: z.object({ id: words, name: words, sinceMs: number, perSecond: number }),
  rules: list(
    maxListed,
    z.object({
      name: words,
      kind: z.enum(["rule", "limiter", "gone"]),
      mode: z.enum(["enforce", "shadow"]),
      policy: words,
      match: z.exactOptional(words),
      key: z.exactOptional(words),
      plans: list(maxPlans, z.object({ name: words, policy: words })),
      ban: z.exactOptional(words),
      source: z.exactOptional(words),
      version: z.exactOptional(words),
    }),
  ),
  totals: list(maxListed, z.object({ rule: words, counts, units: z.object({ asked: number, charged: number }), bans: number })),
  requests: keys,
  rejections: keys,
  stores: list(
    maxListed,
    z.object({
      id: words,
      kind: words,
      rules: list(maxListed, words),
      breaker: z.exactOptional(z.enum(["closed", "open", "half-open"])),
      size: z.exactOptional(number),
      latencies: z.object({ counts: numbers(latencyBuckets), maxMs: number }),
      errors: list(maxCodes, z.object({ code: words, count: number })),
      evictions: number,
    }),
  ),
  sources: list(
    maxListed,
    z.object({
      id: words,
      name: words,
      version: z.exactOptional(words),
      refused: z.exactOptional(z.object({ atMs: number, reason: wordsOf(maxReason) })),
    }),
  ),
});

const minute = made(z.unknown(), (value) => Math.floor(numberOf(value) / 60_000) * 60_000);
const burst = z.object({ minuteMs: minute, secondMs: number, count: number, atMost: number, limited: number, inMinute: number });

function historyOf(range: Range): z.ZodMiniType<History> {
  const { stepMs } = ranges[range];
  const points = ranges[range].points + maxExtra;
  const known = Object.fromEntries(results.map((result) => [result, z.exactOptional(numbers(points))]));
  return z.object({
    range: made(z.unknown(), () => range),
    startMs: number.check(z.multipleOf(stepMs)),
    stepMs: z.literal(stepMs),
    points: made(z.unknown(), () => points),
    rules: list(maxListed, z.object({ rule: words, series: z.object(known) as z.ZodMiniType<RuleHistory["series"]> })),
    bursts: list(ranges.day.points + maxExtra, burst),
  });
}

/** The report of another process; undefined if it is no report. */
export function receivedReport(text: string): Report | undefined {
  return received(text, report);
}

const histories = { minute: historyOf("minute"), hour: historyOf("hour"), day: historyOf("day") };

/** What another process has counted in a range; undefined if it is no history of it. */
export function receivedHistory(range: Range, text: string): History | undefined {
  return received(text, histories[range]);
}

function received<T>(text: string, type: z.ZodMiniType<T>): T | undefined {
  if (text.length > maxCharacters) return undefined;
  try {
    return type.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
