import type { Counts, Result } from "../contract.js";

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
  { id: "exempt", label: "Exempt", means: "passed uncounted: the client or key is exempt", always: false },
  { id: "delayed", label: "Delayed", means: "passed after a wait in a queue", always: false },
  { id: "degraded", label: "Degraded", means: "decided without the store", always: false },
  { id: "shadow-limited", label: "Shadow", means: "passed, and would be limited if the rule were enforced", always: false },
  { id: "missing-key", label: "No key", means: "rejected: the request has no key", always: false },
  { id: "limited", label: "Limited", means: "rejected", always: true },
];

const rejecting: readonly Result[] = ["limited", "missing-key"];

export const requestsIn = (counts: Counts): number => results.reduce((sum, { id }) => sum + (counts[id] ?? 0), 0);

export const rejectedIn = (counts: Counts): number => rejecting.reduce((sum, id) => sum + (counts[id] ?? 0), 0);

export function add(a: Counts, b: Counts): Counts {
  const sum: Record<string, number> = { ...a };
  for (const [result, count] of Object.entries(b)) sum[result] = (sum[result] ?? 0) + (count ?? 0);
  return sum;
}
