/**
 * What the state of a key holds at one moment, under one policy. `empty`: nothing counts, as if the key had never been used. A full bucket is
 * empty too, and so is a queue in which nobody waits.
 */
export type StateView = EmptyView | BucketView | WindowsView | LogView | QueueView | HeldView;

export interface EmptyView {
  readonly kind: "empty";
}

/** A token bucket, or GCRA. */
export interface BucketView {
  readonly kind: "bucket";
  /** The tokens in it now, with a fraction if tokens arrive continuously. Negative in debt. */
  readonly level: number;
  readonly capacity: number;
  /** When the next tokens arrive, in milliseconds since the epoch. Only if they arrive in intervals: else they arrive continuously. */
  readonly refillsAtMs?: number;
}

/** A fixed window, or the sub-windows of a sliding window. */
export interface WindowsView {
  readonly kind: "windows";
  readonly windowMs: number;
  readonly limit: number;
  /** Those that have counted something, oldest first. */
  readonly windows: readonly WindowView[];
}

/** Counts `count * weight` units now, rounded down. */
export interface WindowView {
  readonly startMs: number;
  readonly endMs: number;
  /** The units that this policy counts. They exceed the limit after a debt, or in a fixed window whose limit was higher before. */
  readonly count: number;
  /** The share of the units that counts now: below 1 for the sub-window that is leaving the sliding window. */
  readonly weight: number;
}

export interface LogView {
  readonly kind: "log";
  readonly windowMs: number;
  readonly limit: number;
  /** The units that count, by the time at which they were taken, newest last. Only the newest 1000 times of a longer log. */
  readonly units: readonly LoggedUnits[];
  /** All units that count. They exceed the limit after a debt, or if the limit was higher before. */
  readonly total: number;
}

export interface LoggedUnits {
  readonly atMs: number;
  readonly units: number;
}

/** A leaky bucket. */
export interface QueueView {
  readonly kind: "queue";
  /** The units that wait, with the fraction of the one whose turn is next. Above the capacity after a debt or under a smaller plan. */
  readonly length: number;
  readonly capacity: number;
  /** When the last one has had its turn, in milliseconds since the epoch. */
  readonly drainedAtMs: number;
}

/** Units that are set aside: the slots of requests in flight. */
export interface HeldView {
  readonly kind: "held";
  readonly limit: number;
  /** The held units, by the time at which they come back by themselves, soonest first. */
  readonly held: readonly HeldUnits[];
  /** All held units. */
  readonly total: number;
  /** What the limit has counted beside them: empty under `concurrency`. */
  readonly used: StateView;
}

export interface HeldUnits {
  readonly untilMs: number;
  readonly units: number;
}

export const emptyView: EmptyView = Object.freeze({ kind: "empty" });

/** The most times in a `LogView`. */
export const mostLoggedTimes = 1000;
