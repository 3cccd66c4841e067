import { type Counts, type History, results as ids, type Result, type RuleHistory, rejections, wholeRequests } from "../contract.js";

interface ResultWords {
  readonly id: Result;
  readonly label: string;
  /** What it means, after the name of a figure. */
  readonly means: string;
  /** Shown although it has not occurred. */
  readonly always: boolean;
}

const words: Readonly<Record<Result, Omit<ResultWords, "id">>> = {
  allowed: { label: "Allowed", means: "passed", always: true },
  exempt: { label: "Not counted", means: "passed uncounted: the client is exempt or skipped, or no rule applies", always: false },
  delayed: { label: "Delayed", means: "passed after a wait in a queue", always: false },
  "fallback-allowed": { label: "Fallback", means: "passed: the fallback store decided", always: false },
  "failed-open": { label: "Failed open", means: "passed uncounted: the store failed", always: false },
  "shadow-limited": { label: "Shadow", means: "passed, and would be limited if the rule were enforced", always: false },
  "missing-key": { label: "No key", means: "rejected: the request has no key", always: false },
  "ambiguous-path": { label: "Ambiguous path", means: "rejected: servers read its path in different ways", always: false },
  "failed-closed": { label: "Failed closed", means: "rejected: the store failed", always: false },
  "fallback-limited": { label: "Fallback limited", means: "rejected: the fallback store decided", always: false },
  blocked: { label: "Blocked", means: "rejected: the key is blocked by hand", always: false },
  banned: { label: "Banned", means: "rejected: the key is banned after repeated rejections", always: false },
  limited: { label: "Limited", means: "rejected", always: true },
};

/** The results of a request, from the bottom of a stack to its top. */
export const results: readonly ResultWords[] = ids.map((id) => ({ id, ...words[id] }));

const sumOf = (counts: Counts, which: readonly Result[]): number => which.reduce((sum, id) => sum + (counts[id] ?? 0), 0);

export const requestsIn = (counts: Counts): number => sumOf(counts, ids);

export const rejectedIn = (counts: Counts): number => sumOf(counts, rejections);

/** What became of requests that were decided without the store. */
export const withoutStore = {
  "failed-open": "passed uncounted",
  "failed-closed": "were rejected",
  "fallback-allowed": "passed by the fallback",
  "fallback-limited": "were rejected by the fallback",
} as const;

/** How many were decided without the store. */
export const withoutStoreIn = (counts: Counts): number => sumOf(counts, Object.keys(withoutStore) as Result[]);

/** What a chart shows: one rule by its name, or whole requests. */
type Chosen = string | undefined;

const seriesIn = (history: History, rule: Chosen): RuleHistory["series"] =>
  history.rules.find((each) => each.rule === (rule ?? wholeRequests))?.series ?? {};

export const seriesOf = (history: History, result: Result, rule?: Chosen): readonly number[] =>
  seriesIn(history, rule)[result] ?? new Array<number>(history.points).fill(0);

/** Requests of the whole range by result. */
export const countsOf = (history: History, rule?: Chosen): Counts =>
  countsIn(history, rule, (series) => series.reduce((sum, count) => sum + count, 0));

/** Requests of one step by result. */
export const countsAt = (history: History, index: number, rule?: Chosen): Counts => countsIn(history, rule, (series) => series[index] ?? 0);

function countsIn(history: History, rule: Chosen, countOf: (series: readonly number[]) => number): Counts {
  const counts = Object.entries(seriesIn(history, rule)).map(([result, series]) => [result, countOf(series)] as const);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

/** How many seconds of a history were counted. A process that is younger than the range has not had the whole range. */
export function secondsOf({ startMs, stepMs, points }: History, sinceMs: number): number {
  const seconds = (points * stepMs) / 1000;
  return Math.min(seconds, Math.max(1, startMs / 1000 + seconds - sinceMs / 1000));
}
