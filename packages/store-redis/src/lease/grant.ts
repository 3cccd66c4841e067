import type { Policy } from "@floodgate/core";
import type { Charge } from "@floodgate/core/store";

/**
 * Units of one key that Redis has charged and this process may spend. Times are by the clock of the leases: this process's monotonic clock,
 * or the injected one.
 */
export interface Grant {
  /** Names the lease in Redis, which has recorded its charge under it. */
  readonly id: string;
  readonly units: number;
  spent: number;
  /** The charge of the debit. What is spent here is a part of it. */
  readonly charge: Charge;
  /** What the debit left, and the wait until the reset after it. */
  readonly remaining: number;
  readonly resetAfterMs: number;
  /** When the debit was sent. */
  readonly sentMs: number;
  /** Units may be spent before this time. */
  readonly untilMs: number;
  /** The same by the wall clock, which does not stand still while the machine is suspended; infinite with an injected clock. */
  readonly untilWallMs: number;
}

/** A time by the clock of the leases and by the wall clock. */
export interface Moment {
  readonly ms: number;
  readonly wallMs: number;
}

/** Whether a grant has ended. A clock before the debit has stepped back, so the age of the grant is unknown. */
export function isOver({ sentMs, untilMs, untilWallMs }: Grant, { ms, wallMs }: Moment): boolean {
  return ms >= untilMs || ms < sentMs || wallMs >= untilWallMs;
}

/** Two clocks may drift apart by this ratio: twice the most that NTP corrects. */
const drift = 0.001;

/**
 * How long units may be spent, from the moment in which their debit was sent. At most a life; in a fixed window, until a little before its
 * end, so that others can still use what is given back; in a bucket, until it has refilled what all processes may hold.
 * @param resetAfterMs of the debit's decision.
 * @param held the units that all processes may hold.
 */
function leaseMs(policy: Policy, lifeMs: number, resetAfterMs: number, held: number): number {
  let maxMs = lifeMs;
  if (hasEdge(policy)) {
    // The server's time is rounded down to a millisecond.
    maxMs = Math.min(maxMs, resetAfterMs - 1 - Math.min(lifeMs / 10, 10));
  } else if (policy.algorithm === "token-bucket" || policy.algorithm === "gcra") {
    maxMs = Math.min(maxMs, (policy.spanMs * held) / policy.quota);
  }
  return maxMs * (1 - drift);
}

/** Whether all units come back at once, at a window's edge. */
function hasEdge({ algorithm }: Policy): boolean {
  return algorithm === "fixed-window" || algorithm === "calendar-window";
}

/** Units that Redis has just debited. */
export interface DebitedUnits extends Pick<Grant, "id" | "units" | "charge" | "remaining" | "resetAfterMs" | "sentMs"> {
  /** The processes that leased this key lately, with this one. */
  readonly processes: number;
  readonly sentWallMs: number;
}

/** The grant of a debit under a policy. It may be over already. */
export function grantOf(policy: Policy, lifeMs: number, debited: DebitedUnits): Grant {
  const { id, units, charge, remaining, resetAfterMs, sentMs, sentWallMs, processes } = debited;
  const livesMs = leaseMs(policy, lifeMs, resetAfterMs, processes * units);
  return { id, units, spent: 0, charge, remaining, resetAfterMs, sentMs, untilMs: sentMs + livesMs, untilWallMs: sentWallMs + livesMs };
}

/** How long not to fetch again after a useless fetch: a life, or until a new window has units again. */
export function restMsAfter(policy: Policy, lifeMs: number, sentMs: number, resetAfterMs: number, nowMs: number): number {
  if (!hasEdge(policy) || resetAfterMs === 0) return lifeMs;
  return Math.min(lifeMs, sentMs + resetAfterMs - nowMs);
}
