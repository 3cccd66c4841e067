import { FloodgateError } from "../support/errors.js";
import { type DecisionUnder, MadeDecision } from "./made-decision.js";
import type { OptionDescriptions } from "./options.js";

/** Numbers of many keys side by side: exact integers below 2^53. */
export type Cells = Float64Array;

/** A limit, as far as an algorithm has to know it: the decision bears its name. */
export interface NamedPolicy<P> {
  readonly name: string;
  readonly policy: P;
}

/**
 * How requests under a policy are decided: pure functions over one key's state, a few numbers from `cells[at]` on. All zeros are no
 * state. It knows no clock, no storage and no framework, so that any store can host it.
 */
export interface Algorithm<P> {
  /** Its name, and that of its twin in another language: `smooth-bucket` for `tokenBucket` and `gcra`. */
  readonly name: string;
  /** The fields of a policy that it computes with: a twin is handed these. */
  readonly parameters: readonly (keyof P & string)[];
  /** What the cells hold, in their order; the last may begin a list. A twin hands states over in this order. */
  readonly cells: readonly string[];
  /** Whether an allowed request may have to wait for its turn. */
  readonly delays?: true;
  /** Whether a rejected request changes the state. Default: it never does. */
  readonly countsRejected?: (policy: P) => boolean;
  /** The units of a key that still count, as a look at it tells. Default: those missing from the limit. */
  readonly used?: (policy: P, look: Pick<DecisionUnder<P>, "limit" | "remaining" | "resetAfterMs">) => number;
  /** What so many units of a charge weigh at `nowMs`, as far as they still count. Default: as many. */
  readonly weight?: (policy: P, units: number, chargedAtMs: number, nowMs: number) => number;
  /** The time in which a bucket is full again that lacks so many units more than it holds; not in windows, which end. */
  readonly recoveryMs?: (policy: P, units: number) => number;
  /** The time of a charge, moved to the last refill before it, for a bucket that is full at `fullAtMs`. Default: unmoved. */
  readonly refilledMs?: (policy: P, chargedAtMs: number, fullAtMs: number) => number;

  /** How many cells the state may take once one more request has been decided. */
  size(policy: P, cells: Cells, at: number): number;

  /**
   * Decides a request of `cost` units at `nowMs`. With `commit` an allowed request is charged (and a rejected one
   * logged, where the policy counts those); without, nothing is written and the decision describes the state as it is.
   */
  decide<Q extends P>(limit: NamedPolicy<Q>, cells: Cells, at: number, nowMs: number, cost: number, commit: boolean): DecisionUnder<Q>;

  /**
   * Changes what a decision of `reserved` units at `chargedAtMs` charged to its real `cost`, from 0 on. What is less is given back
   * as far as it still counts; what is more is charged, even into debt: a window's where the charge still counts, a bucket's always,
   * so that a state may come of none. The state changes by what is answered, whatever other policies have charged to it since: it is
   * not clamped. No more than 2^52 changes at once, units of a window or parts of a bucket's, and a debt is counted as far as exact
   * arithmetic goes.
   * What leaves nothing leaves zeros.
   * @returns the units charged in addition, or below 0 those given back, a fraction where a bucket has partly refilled.
   */
  settle(policy: P, cells: Cells, at: number, nowMs: number, chargedAtMs: number, reserved: number, cost: number): number;
}

/**
 * One algorithm as users know it: what its policies are called, read from and described by. Everything that is said of the algorithm
 * elsewhere (rules files and their schema, the command line, what a fallback allows) comes from here.
 */
export interface AlgorithmDefinition<P extends PolicyBase, Options> {
  /** One sentence for editors and docs. */
  readonly description: string;
  readonly options: OptionDescriptions<Options>;
  /** The factory. */
  readonly make: (options: Options) => P;
  /** The options that make the policy anew, without those that were left to their default. */
  readonly optionsOf: (policy: P) => { readonly [Option in keyof Options]: Options[Option] | undefined };
  /**
   * The policy for each of so many processes that count apart. Together they allow no more than the whole, where there is a unit for each.
   * @param part a count rounded down to one process's share, at least 1. An even pace is slowed exactly instead.
   */
  readonly share: (policy: P, part: (units: number) => number, processes: number) => P;
  /** The policy's numbers in words: `100 per 1m`. */
  readonly describe: (policy: P) => string;
  /** How its policies are decided: one way, or several. */
  readonly algorithms: readonly [Algorithm<P>, ...Algorithm<P>[]];
  /** The way that a policy is decided. Default: the only one. */
  readonly algorithmOf?: (policy: P) => Algorithm<P>;
}

/** What every policy tells besides its parameters. */
export interface PolicyBase {
  /** The largest cost that could ever pass. */
  readonly quota: number;
  /** The window, or the time a bucket takes from empty to full (a queue from full to empty), rounded up. */
  readonly spanMs: number;
  /** What tells states apart: the algorithm and its times. Policies that share it keep each other's state. */
  readonly stateKind: string;
}

/** One writer for all algorithms: V8 gives every decision the same shape. It has no charge until `charged` gives it one. */
export function decision<P>(
  limit: NamedPolicy<P>,
  quota: number,
  allowed: boolean,
  remaining: number,
  retryAfterMs: number,
  resetAfterMs: number,
  delayMs: number,
  cost: number,
  atMs: number,
): DecisionUnder<P> {
  return new MadeDecision(allowed, quota, remaining, retryAfterMs, resetAfterMs, delayMs, cost, atMs, limit.name, limit.policy, false);
}

/** The largest product of a policy's numbers: so much may be owed on top of it, and instants be added, below 2^53. */
const largest = 2 ** 51;

/**
 * Refuses a policy whose exact arithmetic would leave the whole numbers that a double holds.
 * @param most the largest product that leaves room for a debt as large as the quota.
 */
export function checkExact(where: string, product: number, advice: string, most: number = largest): void {
  if (product <= most) return;
  throw new FloodgateError(
    "FLOODGATE_POLICY_TOO_LARGE",
    `${where}: these numbers need exact arithmetic up to ${product.toExponential(1)}, above 2^${Math.log2(most)} (${(most / 1e15).toFixed(1)}e15). ${advice}`,
  );
}
