import { type Counts, results as ids, type Result, rejections } from "../contract.js";

export type { Counts, Result };

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
