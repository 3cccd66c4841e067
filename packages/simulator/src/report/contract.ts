// What the report's page reads. The page imports these types only. All of it is plain data, and bounded whatever the log has.

import type { MeasuredClient, RuleMeasure } from "../measure/rule-meter.js";
import type { PolicyWords } from "../policies/options.js";
import type { LogSummary } from "../simulate.js";

/** How many requests came over time, and how many each limit would have rejected. */
export interface Timeline {
  /** When the first interval starts, in milliseconds since the epoch, and how long each interval is. */
  readonly startMs: number;
  readonly stepMs: number;
  /** All requests that were read, by interval. */
  readonly requests: readonly number[];
}

/** One limit of a grid, and what `simulate` says for it. */
export interface GridPoint {
  readonly limit: number;
  /** Requests that the rule would have limited, and clients that it would ever have limited. */
  readonly limited: number;
  readonly clientsLimited: number;
  /** The limited requests over time: pairs of an interval's number and its count. Intervals without any are left out. */
  readonly limitedAt: readonly number[];
}

/** A rule under many limits. Each was replayed by the algorithm of production, beside the other rules as they are. */
export interface Grid {
  /** The option that differs: `limit`, `capacity` or `burst`. */
  readonly option: string;
  /** By limit, the lowest first. */
  readonly points: readonly GridPoint[];
  /** The number of the rule's own limit among the points. */
  readonly own: number;
  /** How many clients need a limit of exactly that number: pairs, the lowest first. Numbers above 100 are rounded up to two digits. */
  readonly needs: readonly (readonly [need: number, clients: number])[];
  /** The policy as a rules file has it. */
  readonly policy: PolicyWords;
}

/** The busiest moment of the client that needs the highest limit, and what all algorithms with the rule's numbers make of it. */
export interface Burst {
  readonly client: string;
  readonly startMs: number;
  readonly stepMs: number;
  readonly steps: number;
  /** The requests, each as milliseconds after `startMs` and its cost. At most some hundreds: the first ones. */
  readonly requests: readonly (readonly [afterMs: number, cost: number])[];
  /** How many requests there were in all. */
  readonly count: number;
  readonly verdicts: readonly Verdict[];
}

/** What one algorithm makes of a burst, by interval. */
export interface Verdict {
  readonly algorithm: string;
  /** Its numbers in words: `100 per 1m`. */
  readonly numbers: string;
  /** The policy as a rules file has it. */
  readonly policy: PolicyWords;
  /** Whether it is the rule's own policy. */
  readonly isOwn: boolean;
  readonly allowed: readonly number[];
  readonly delayed: readonly number[];
  readonly limited: readonly number[];
  readonly longestDelayMs: number;
}

export interface ReportClient extends Pick<MeasuredClient, "requests" | "limited" | "peak"> {
  readonly name: string;
  /** Null if no wait would have ended it. */
  readonly longestLockoutMs: number | null;
}

/** A rule, or a policy that was tried. */
export interface ReportRule
  extends Pick<RuleMeasure, "requests" | "limited" | "clients" | "clientsLimited" | "delayed" | "longestQueuedMs" | "bans" | "windowMs"> {
  readonly name: string;
  readonly algorithm: string;
  /** Its numbers in words: `100 per 1m`. */
  readonly numbers: string;
  readonly mode: "enforce" | "shadow";
  readonly by: string;
  readonly longestLockoutMs: number | null;
  /** The clients with the most requests, and those that were limited most: each client once, by requests. */
  readonly heaviest: readonly ReportClient[];
  /** Undefined if no grid was wanted, the rule has no fixed number, or no request matches. */
  readonly grid: Grid | undefined;
  readonly burst: Burst | undefined;
}

export interface ReportData extends Pick<LogSummary, "lines" | "requests" | "skipped" | "firstMs" | "lastMs"> {
  readonly task: "rules" | "compare" | "suggest";
  readonly madeAtMs: number;
  readonly command: string;
  readonly logs: readonly string[];
  readonly formats: readonly string[];
  /** Requests that any enforced rule would have rejected. Undefined if policies were only tried. */
  readonly rejected: number | undefined;
  /** The share of clients that a suggestion may touch. */
  readonly touch: number | undefined;
  readonly timeline: Timeline | undefined;
  readonly rules: readonly ReportRule[];
  readonly notes: readonly string[];
}
