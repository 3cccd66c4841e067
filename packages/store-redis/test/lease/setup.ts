import type { Policy } from "@floodgate/core";

/** What a run explores. Times are in milliseconds. */
export interface Setup {
  readonly policy: Policy;
  readonly processes: number;
  readonly lifeMs: number;
  readonly stepMs: number;
  /** When time ends. */
  readonly endMs: number;
  /** How often each of these may happen in one run. */
  readonly crashes: number;
  readonly losses: number;
  readonly resets: number;
  readonly blocks: number;
  readonly closes: number;
}

/** A mistake planted in the code around the state machine: the checker must find it. */
export type Fault =
  | "spend-before-debit"
  | "life-from-reply"
  | "record-remains"
  | "no-end-after-loss"
  | "no-record-of-the-end"
  | "no-release"
  | "no-edge"
  | "no-end-at-reset"
  | "void-is-spent"
  | undefined;
