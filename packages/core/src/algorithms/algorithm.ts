import { FloodgateError } from "../support/errors.js";
import type { Promised } from "../support/promises.js";

/** The states of many keys in one array. Each cell is a whole number below 2^53. */
export type Cells = Float64Array;

/** What an algorithm decides by. */
export interface NamedPolicy<P> {
  readonly name: string;
  readonly policy: P;
  /** How long a request holds its units, in milliseconds, if the policy holds units; 0: it charges them at once. Default: the policy's time. */
  readonly holdMs?: number | undefined;
}

/** A named policy with its algorithm, as stores receive it. Made once, compared by identity. */
export interface Limit<P> extends NamedPolicy<P> {
  readonly algorithm: Algorithm<P>;
  /** Whether a store may lease units of its keys ahead of requests. Default: as the store is set up. */
  readonly lease?: boolean | undefined;
}

/** Why a key is turned away whatever its limit says: `limiter.block`, or a rule's `ban`. */
export type BlockKind = "block" | "ban";

/** The block or the ban of a key. */
export interface KeyBlock {
  readonly kind: BlockKind;
  /** When it ends, in milliseconds since the epoch of the store's clock. */
  readonly untilMs: number;
}

/** The result of a check under one policy. Durations are whole milliseconds from the store's current time. */
export interface DecisionUnder<P> {
  /** Whether the request may pass. A rejection is a result, never an exception. */
  readonly allowed: boolean;
  /** The largest cost that could ever pass: the policy's `limit`, `capacity` or `burst`. */
  readonly limit: number;
  /** The largest cost that would pass right now, after this decision; never below 0. */
  readonly remaining: number;
  /** The units of the limit that are taken now, after this decision: `limit - remaining`. A debt shows as the whole limit. */
  readonly used: number;
  /** The shortest wait after which a request of the same cost passes if nothing else happens. 0 if it passes now, Infinity if never. */
  readonly retryAfterMs: number;
  /** The time after which the key is as if it had never been used. */
  readonly resetAfterMs: number;
  /** How long to hold an allowed request (`leakyBucket`); 0 for all other policies. */
  readonly delayMs: number;
  /** The units that the request costs. */
  readonly cost: number;
  /** The time that the charge counts from, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The limiter's name. */
  readonly name: string;
  readonly policy: P;
  /**
   * Whether the store failed and `onStoreError` decided. With a fallback, the numbers are those of its own counts, and `limit` is this
   * process's share. Otherwise they are unknown: `remaining` and `resetAfterMs` are 0, and `retryAfterMs` is 0 or, if the request is
   * rejected, the time until the store is asked again.
   */
  readonly degraded: boolean;
  /** What decided in place of the store: `onStoreError` `"allow"` or `"deny"`, or its fallback store. Undefined if the store did. */
  readonly degradedBy?: "allow" | "deny" | "fallback" | undefined;
  /**
   * When the units come back that this decision holds, in milliseconds since the epoch of the store's clock. Undefined if it charged them, or
   * nothing.
   */
  readonly heldUntilMs?: number | undefined;
  /** Set if the key is blocked or banned: the one of the two that lasts longer. Otherwise a rejection means that the limit is used up. */
  readonly blocked?: KeyBlock | undefined;
  /** The decisions of all limits that were checked in the same step, this one and shadow limits included, in the order of the rules. */
  readonly decisions?: readonly DecisionUnder<P>[];
}

/** What an allowed decision charged. A store settles it. */
export interface Charge {
  /** The units that were charged. */
  readonly cost: number;
  /** The time that the charge counts from, in milliseconds since the epoch. */
  readonly atMs: number;
  /** The number of the charged state, as the store passed it to `inState`. */
  readonly state: number | undefined;
  /** When its units come back by themselves, if they are held and not charged. */
  readonly heldUntilMs?: number | undefined;
  /** The receipt that was issued for the charge, if any. The store redeems it once, and not from `untilMs` (store time) on, unless slots are renewed by it. */
  readonly receipt?: ReceiptMark | undefined;
}

export interface ReceiptMark {
  /** Letters, digits, `-` and `_`: unique for each charge. */
  readonly id: string;
  readonly untilMs: number;
}

/** Settles a charge: what called the store, or a fallback that counted in its place. */
export interface Settler<P> {
  /** Identity of the store's data. */
  readonly scope: object;
  /** Identity of the data that holds the charge, for other processes. Undefined if only this process has it. */
  readonly dataId: string | undefined;
  settle(limit: Limit<P>, key: string, charge: Charge, cost: number): Promised<number>;
  /**
   * Renews the slots of a charge. Undefined if nobody can: then they come back by themselves.
   * @returns undefined if the receipt of the charge was redeemed or has expired.
   */
  renew?(limit: Limit<P>, key: string, charge: Charge): Promised<DecisionUnder<P> | undefined>;
}

/** The start of the window before the one that holds a time, the start and the end of that one, and the end of the next. */
export type Edges = readonly [before: number, start: number, end: number, after: number];

/**
 * Decides requests under a policy. These are pure functions over the state of one key: a few numbers from `cells[at]` on. A state of zeros
 * means that the key was not used. An algorithm knows no clock, no storage and no framework, so any store can host it.
 */
export interface Algorithm<P> {
  /** The name of the algorithm, and of its twin in another language. `tokenBucket` and `gcra` share `smooth-bucket`. */
  readonly name: string;
  /** The fields of the policy that the algorithm computes with. A twin gets these. */
  readonly parameters: readonly (keyof P & string)[];
  /** For windows with edges that no number of the policy gives. A twin gets these after the parameters, because it may read another clock. */
  readonly edges?: (policy: P, nowMs: number) => Edges;
  /** The names of the cells, in order. The last one may begin a list. A twin returns states in this order. */
  readonly cells: readonly string[];
  /** Whether an allowed request may have a delay. Default: it never has. */
  readonly delays?: true;
  /** Whether a rejected request changes the state. Default: it never does. */
  readonly countsRejected?: (policy: P) => boolean;
  /** The units of a key that still count, from a decision that charged nothing. Default: `limit - remaining`. */
  readonly used?: (policy: P, look: Pick<DecisionUnder<P>, "limit" | "remaining" | "resetAfterMs">) => number;
  /** The units of a charge that still count at `nowMs`. Default: all of them. */
  readonly weight?: (policy: P, units: number, chargedAtMs: number, nowMs: number) => number;
  /** For buckets: the time in milliseconds until a bucket with a debt of `units` is full. Windows have none, because they end. */
  readonly recoveryMs?: (policy: P, units: number) => number;
  /** For buckets with intervals: the last refill before a charge, if the bucket is full at `fullAtMs`. Default: the time of the charge. */
  readonly refilledMs?: (policy: P, chargedAtMs: number, fullAtMs: number) => number;

  /**
   * For buckets: when the state is the same as no state for every plan of its key. For this plan that may be earlier, after its
   * `resetAfterMs`. Default: it is at the same time for all plans.
   */
  readonly endOf?: (policy: P, cells: Cells, at: number, nowMs: number) => number;

  /** For windows that end all at once: the end of the one that `atMs` is in. Units are held no longer. */
  readonly windowEndMs?: (policy: P, atMs: number) => number;

  /** Whether `size` depends on the state: a log grows with each request. Default: it depends on the policy's `stateKind` only. */
  readonly grows?: true;
  /** The number of cells that the state may need after one more request, or one more charge without a reservation. */
  size(policy: P, cells: Cells, at: number): number;

  /**
   * Decides a request of `cost` units at `nowMs`, in milliseconds since the epoch. With `commit` it charges an allowed request, and logs a
   * rejected one if the policy counts those. Without `commit` it writes nothing.
   */
  decide<Q extends P>(limit: NamedPolicy<Q>, cells: Cells, at: number, nowMs: number, cost: number, commit: boolean): DecisionUnder<Q>;

  /**
   * Changes a charge of `reserved` units, made at `chargedAtMs`, to its real `cost` of at least 0.
   *
   * - A lower cost gives back the difference, as far as it still counts.
   * - A higher cost charges the difference, even into debt. A window does so only while the charge still counts. A bucket always does,
   *   even if it has no state.
   * - If nothing was reserved (0), there is no earlier charge: `cost` is charged now, and `chargedAtMs` is ignored. A key without a state
   *   gets one.
   *
   * The state changes by the returned units and is not clamped, whatever other policies have charged since. One call changes at most 2^52
   * units of a window, or parts of a bucket. Debts are capped where arithmetic would stop being exact. A state without usage becomes zeros.
   * @returns the units charged in addition; negative if units were given back. A fraction if a bucket has partly refilled.
   */
  settle(policy: P, cells: Cells, at: number, nowMs: number, chargedAtMs: number, reserved: number, cost: number): number;

  /** For units that are held until `heldUntilMs`: stops holding them, if they are still held, and charges `cost` now, even into debt. */
  settleHeld?(policy: P, cells: Cells, at: number, nowMs: number, heldUntilMs: number, reserved: number, cost: number): number;

  /**
   * For slots: holds the units of a charge anew, from `nowMs` on, whatever the limit is by now. Units that came back meanwhile are taken
   * again if there is room: then this is a decision as any other.
   * @param untilMs from when on units that came back are not taken again. Default: never.
   */
  renew?<Q extends P>(
    limit: NamedPolicy<Q>,
    cells: Cells,
    at: number,
    nowMs: number,
    chargedAtMs: number,
    cost: number,
    untilMs?: number,
  ): DecisionUnder<Q>;

  /**
   * Describes the state at `nowMs` for people, and changes nothing. It is `empty` exactly if a decision has `resetAfterMs` 0, and its numbers
   * explain `remaining`.
   */
  view(policy: P, cells: Cells, at: number, nowMs: number): StateView;
}

/**
 * An algorithm as users know it. Rules files and their schema, the command line and the share of a fallback are derived from this.
 */
export interface AlgorithmDefinition<P extends PolicyBase, Options> {
  /** The options that are numbers or durations. A plan may override them. */
  readonly numbers: readonly (keyof Options & string)[];
  /** The factory. */
  readonly make: (options: Options) => P;
  /** The options from which `make` makes the same policy, without those that have their default. */
  readonly optionsOf: (policy: P) => { readonly [Option in keyof Options]: Options[Option] | undefined };
  /**
   * The options that differ for each of several processes that count apart. Together they allow no more than `policy`, if it has a unit for
   * each.
   * Default: `limit` is divided.
   * @param part divides a count by the processes and rounds down, to at least 1. Rates are divided exactly.
   */
  readonly share?: (policy: P, part: (units: number) => number, processes: number) => Partial<Options>;
  /** The algorithms that decide its policies; several if an option chooses between them. */
  readonly algorithms: readonly [Algorithm<P>, ...Algorithm<P>[]];
  /** The algorithm that decides a policy. Default: the first. */
  readonly algorithmOf?: (policy: P) => Algorithm<P>;
}

// biome-ignore lint/suspicious/noExplicitAny: each algorithm has its own policies and options
type AnyDefinition = AlgorithmDefinition<any, any>;

/** By their names in a rules file. A bundle leaves out the modules of algorithms whose factories an app does not import. */
export const loadedAlgorithms: Map<string, AnyDefinition> = new Map();

/** Called by the module of each algorithm. */
export function register<Definition extends AnyDefinition>(name: string, definition: Definition): Definition {
  loadedAlgorithms.set(name, definition);
  return definition;
}

/** The fields of every policy. */
export interface PolicyBase {
  /** The largest cost that could ever pass. */
  readonly quota: number;
  /** The window, or the time that a bucket takes from empty to full (a queue from full to empty), in milliseconds, rounded up. */
  readonly spanMs: number;
  /** The algorithm and its times. Policies with the same kind share a state. */
  readonly stateKind: string;
  /** How long units are held that are neither given back nor charged, in milliseconds. Undefined if units are charged at once. */
  readonly holdMs?: number;
}

/** The largest product of a policy's numbers. A debt and an instant can be added to it, and the sum stays below 2^53. */
const maxProduct = 2 ** 51;

/**
 * Refuses a policy whose arithmetic would not be exact.
 * @param max the largest product that leaves room for a debt as large as the quota.
 * @throws FloodgateError `FLOODGATE_POLICY_TOO_LARGE`
 */
export function checkExact(where: string, product: number, advice: string, max: number = maxProduct): void {
  if (product <= max) return;
  throw new FloodgateError(
    "FLOODGATE_POLICY_TOO_LARGE",
    `${where}: these numbers need exact arithmetic up to ${product.toExponential(1)}, above 2^${Math.log2(max)}. ${advice}`,
  );
}

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
export const maxLoggedTimes = 1000;
