import { type Duration, parseDuration } from "../support/duration.js";
import { FloodgateError } from "../support/errors.js";
import { checkOptions, quotaNumber, wholeNumber } from "../support/options.js";
import { type Algorithm, type Cells, decision, type PolicyBase } from "./algorithm.js";
import { changeOf } from "./debt.js";
import { type Rate, rateOf, rescale } from "./rate.js";
import { AMOUNT, deepestAt, flowed, note, QUOTA, spanAt, takesAt, unitAt } from "./shared.js";

/** A first-in-first-out queue that is drained at an even pace: it delays, then rejects. */
export interface LeakyBucketPolicy extends PolicyBase, Rate {
  readonly algorithm: "leaky-bucket";
  readonly capacity: number;
  readonly leak: number;
  readonly everyMs: number;
  /** A request that would wait longer is rejected; Infinity where only the capacity says so. */
  readonly maxDelayMs: number;
}

/** The longest wait that a JavaScript timer holds. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * A queue of `capacity` places, drained by `leak` every `every`. An accepted request has `delayMs` to wait until its turn;
 * with `maxDelayMs`, one that would wait longer is rejected.
 */
export function leakyBucket(options: { capacity: number; leak: number; every: Duration; maxDelayMs?: number }): LeakyBucketPolicy {
  const where = "leakyBucket";
  checkOptions(where, options, ["capacity", "leak", "every", "maxDelayMs"], `${where}({ capacity: 10, leak: 5, every: "1s" })`);
  const capacity = quotaNumber(where, "capacity", options.capacity, 10);
  const leak = wholeNumber(where, "leak", options.leak, 1, 5);
  const everyMs = parseDuration(options.every, "every");
  const rate = rateOf(where, capacity, leak, everyMs);
  const longest = Math.ceil(((capacity - 1) * rate.unit) / rate.flow);
  const maxDelayMs =
    options.maxDelayMs === undefined ? Number.POSITIVE_INFINITY : wholeNumber(where, "maxDelayMs", options.maxDelayMs, 0, 5000);
  if (Math.min(maxDelayMs, longest) > longestTimerMs) {
    throw new FloodgateError(
      "FLOODGATE_POLICY_TOO_LARGE",
      `${where}: the last in a queue of ${capacity} would wait ${longest} ms, longer than a timer holds (${longestTimerMs} ms). Lower the capacity, raise the leak, or write maxDelayMs: 30000.`,
    );
  }
  return Object.freeze({
    algorithm: "leaky-bucket",
    capacity,
    leak,
    everyMs,
    maxDelayMs,
    quota: capacity,
    stateKind: `leaky-bucket ${everyMs}`,
    ...rate,
  });
}

/**
 * The backlog after the last charge, in the state's own parts, and that charge's time; then the state's numbers. The backlog may be more
 * than a queue holds: what a larger one has let in, or a debt. That queue is full until as much has drained.
 */
const BACKLOG = 0;
const TIME = 1;

/** When the state's own queue is empty; -Infinity where there is no state, or one from too far ahead. */
function endOf(policy: LeakyBucketPolicy, cells: Cells, at: number, nowMs: number): number {
  if (cells[at + QUOTA] === 0) return Number.NEGATIVE_INFINITY;
  const time = cells[at + TIME] as number;
  if (time > nowMs && time - nowMs > spanAt(policy, cells, at)) return Number.NEGATIVE_INFINITY;
  return time + takesAt(policy, cells, at, cells[at + BACKLOG] as number);
}

/** Backlogs are rounded up. */
function rescaleUp(parts: number, from: number, to: number): number {
  return from === to ? parts : -rescale(-parts, from, to);
}

/** A state's backlog at `nowMs` in the policy's own parts. */
function backlogAt(policy: LeakyBucketPolicy, cells: Cells, at: number, nowMs: number): number {
  const backlog = rescaleUp(cells[at + BACKLOG] as number, unitAt(policy, cells, at), policy.unit);
  return drained(backlog, cells[at + TIME] as number, nowMs, policy.flow);
}

/** A backlog of `time` at `nowMs`. A product above 2^53 is rounded, and more than there is to drain all the same. */
function drained(backlog: number, time: number, nowMs: number, flow: number): number {
  return nowMs > time ? Math.max(backlog - (nowMs - time) * flow, 0) : backlog;
}

export const leakyBucketAlgorithm: Algorithm<LeakyBucketPolicy> = {
  size: () => 4,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { capacity, maxDelayMs, unit, flow, divisor, full, spanMs } = limit.policy;
    const time = cells[at + TIME] as number;
    // Where no other plan charges, the state ends just when this one's queue is empty.
    const own = cells[at + QUOTA] === capacity && cells[at + AMOUNT] === flow * divisor;
    const shared = !own && nowMs < endOf(limit.policy, cells, at, nowMs);
    let backlog = 0;
    if (shared) backlog = backlogAt(limit.policy, cells, at, nowMs);
    else if (own && time - nowMs <= spanMs) backlog = drained(cells[at + BACKLOG] as number, time, nowMs, flow);
    const atMs = time > nowMs && (shared || backlog > 0) ? time : nowMs;
    // The wait is the queue's own: what a clock that stepped back adds is in the times of retry and reset. The state may end before
    // the backlog would have drained at this plan's pace.
    let drainMs = Math.ceil(backlog / flow);
    if (shared) drainMs = Math.min(drainMs, endOf(limit.policy, cells, at, nowMs) - atMs);
    const allowed = cost <= capacity && cost * unit <= full - backlog && drainMs <= maxDelayMs;
    const delayMs = allowed ? drainMs : 0;
    if (allowed && commit) {
      backlog += cost * unit;
      drainMs = Math.ceil(backlog / flow);
      if (shared) {
        keep(limit.policy, cells, at, backlog, atMs, false);
        drainMs = Math.min(drainMs, endOf(limit.policy, cells, at, nowMs) - atMs);
      } else {
        cells[at + BACKLOG] = backlog;
        cells[at + TIME] = atMs;
        cells[at + QUOTA] = capacity;
        cells[at + AMOUNT] = flow * divisor;
      }
    }
    const remaining = drainMs > maxDelayMs || backlog > full ? 0 : Math.floor((full - backlog) / unit);
    const aheadMs = atMs - nowMs;
    let retryAfterMs = 0;
    if (cost > capacity) {
      retryAfterMs = Number.POSITIVE_INFINITY;
    } else if (cost > remaining) {
      const over = backlog - (full - cost * unit);
      const placeMs = over > 0 ? Math.min(Math.ceil(over / flow), drainMs) : 0;
      retryAfterMs = aheadMs + Math.max(placeMs, drainMs - maxDelayMs, 0);
    }
    const resetAfterMs = backlog === 0 ? 0 : aheadMs + drainMs;
    return decision(limit, capacity, allowed, remaining, retryAfterMs, resetAfterMs, delayMs, cost, atMs);
  },

  settle(policy, cells, at, nowMs, _chargedAtMs, reserved, cost) {
    // A place passes with its turn: nothing is given back.
    if (cost <= reserved) return 0;
    // The state keeps its own parts, so it changes by as much for every plan.
    const exists = nowMs < endOf(policy, cells, at, nowMs);
    if (!exists) keep(policy, cells, at, 0, nowMs, true);
    const parts = unitAt(policy, cells, at);
    // What drains until now has gone before the debt: under a faster plan, the time of an empty queue must not pay it.
    const backlog = Math.max((cells[at + BACKLOG] as number) - flowed(policy, parts, cells[at + TIME] as number, nowMs), 0);
    const room = Math.floor((deepestAt(policy, cells, at) - backlog) / parts);
    const units = Math.max(Math.min(changeOf(reserved, cost), room), 0);
    if (units === 0) return 0;
    cells[at + BACKLOG] = backlog + units * parts;
    cells[at + TIME] = Math.max(nowMs, cells[at + TIME] as number);
    return units;
  },
};

/** Writes a backlog in the policy's own parts. */
function keep(policy: LeakyBucketPolicy, cells: Cells, at: number, backlog: number, time: number, begins: boolean): void {
  note(policy, cells, at, begins);
  cells[at + BACKLOG] = rescaleUp(backlog, policy.unit, unitAt(policy, cells, at));
  cells[at + TIME] = time;
}
