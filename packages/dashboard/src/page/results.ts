import { type Counts, type Result, rejections } from "../contract.js";

export type { Counts, Result };

interface ResultWords {
  readonly id: Result;
  readonly label: string;
  /** What it means, after the name of a figure. */
  readonly means: string;
  /** Shown although it has not occurred. */
  readonly always: boolean;
}

/** The results of a request, from the bottom of a stack to its top. */
export const results: readonly ResultWords[] = [
  { id: "allowed", label: "Allowed", means: "passed", always: true },
  { id: "exempt", label: "Not counted", means: "passed uncounted: the client is exempt or skipped, or no rule applies", always: false },
  { id: "delayed", label: "Delayed", means: "passed after a wait in a queue", always: false },
  { id: "fallback-allowed", label: "Fallback", means: "passed: the fallback store decided", always: false },
  { id: "failed-open", label: "Failed open", means: "passed uncounted: the store failed", always: false },
  { id: "shadow-limited", label: "Shadow", means: "passed, and would be limited if the rule were enforced", always: false },
  { id: "missing-key", label: "No key", means: "rejected: the request has no key", always: false },
  { id: "ambiguous-path", label: "Ambiguous path", means: "rejected: servers read its path in different ways", always: false },
  { id: "failed-closed", label: "Failed closed", means: "rejected: the store failed", always: false },
  { id: "fallback-limited", label: "Fallback limited", means: "rejected: the fallback store decided", always: false },
  { id: "blocked", label: "Blocked", means: "rejected: the key is blocked by hand", always: false },
  { id: "banned", label: "Banned", means: "rejected: the key is banned after repeated rejections", always: false },
  { id: "limited", label: "Limited", means: "rejected", always: true },
];

export const requestsIn = (counts: Counts): number => results.reduce((sum, { id }) => sum + (counts[id] ?? 0), 0);

export const rejectedIn = (counts: Counts): number => rejections.reduce((sum, id) => sum + (counts[id] ?? 0), 0);

const without: readonly Result[] = ["failed-open", "failed-closed", "fallback-allowed", "fallback-limited"];

/** How many were decided without the store. */
export const withoutStoreIn = (counts: Counts): number => without.reduce((sum, id) => sum + (counts[id] ?? 0), 0);
