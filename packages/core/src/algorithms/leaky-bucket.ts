import { type Duration, parseDuration } from "../duration.js";
import { FloodgateError } from "../errors.js";
import { checkOptions, quotaNumber, wholeNumber } from "../options.js";
import { type Algorithm, type Cells, decision, type PolicyBase } from "./algorithm.js";
import { changeOf, deepest } from "./debt.js";
import { endOnceCharged, endOnceSettled } from "./end.js";
import { type Rate, rateOf, rescale } from "./rate.js";

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
 * The backlog after the last charge and that charge's time, in units of `UNIT` parts (0: no state; below 0: a debt); drained at
 * `EMPTY_AT`. The backlog may be more than the queue holds: what larger ones have let in, of which this one counts what it holds, or a
 * debt, of which it counts all.
 */
const BACKLOG = 0;
const TIME = 1;
const UNIT = 2;
const EMPTY_AT = 3;

function isState({ spanMs }: LeakyBucketPolicy, cells: Cells, at: number, nowMs: number): boolean {
  return cells[at + UNIT] !== 0 && (cells[at + TIME] as number) - nowMs <= spanMs && nowMs < (cells[at + EMPTY_AT] as number);
}

/** The backlog at the state's time in the policy's own parts, all of it. */
function backlogThen({ unit, full }: LeakyBucketPolicy, cells: Cells, at: number): number {
  return Math.min(rescale(cells[at + BACKLOG] as number, Math.abs(cells[at + UNIT] as number), unit), Math.max(full, deepest));
}

/** When what the queue holds of a backlog, or a debt, has drained. */
function endOf({ flow, full }: LeakyBucketPolicy, backlog: number, debt: boolean, time: number): number {
  return time + Math.ceil((debt ? backlog : Math.min(backlog, full)) / flow);
}

function isOwn(policy: LeakyBucketPolicy, cells: Cells, at: number): boolean {
  const unit = cells[at + UNIT] as number;
  const end = endOf(policy, cells[at + BACKLOG] as number, unit < 0, cells[at + TIME] as number);
  return Math.abs(unit) === policy.unit && cells[at + EMPTY_AT] === end;
}

export const leakyBucketAlgorithm: Algorithm<LeakyBucketPolicy> = {
  size: () => 4,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { capacity, maxDelayMs, unit, flow, full } = limit.policy;
    const exists = isState(limit.policy, cells, at, nowMs);
    const stored = exists ? backlogThen(limit.policy, cells, at) : 0;
    const held = (cells[at + UNIT] as number) < 0 ? stored : Math.min(stored, full);
    const time = cells[at + TIME] as number;
    // A product above 2^53 is rounded, and more than there is to drain all the same.
    const drained = exists && nowMs > time ? (nowMs - time) * flow : 0;
    // What this queue counts of the backlog, and all of it.
    let backlog = Math.max(held - drained, 0);
    let whole = Math.max(stored - drained, 0);
    const atMs = whole > 0 && time > nowMs ? time : nowMs;
    // The wait is the queue's own: what a clock that stepped back adds is in the times of retry and reset.
    let drainMs = Math.ceil(backlog / flow);
    if (backlog > 0) drainMs = Math.min(drainMs, (cells[at + EMPTY_AT] as number) - atMs);
    const allowed = cost <= capacity && cost * unit <= full - backlog && drainMs <= maxDelayMs;
    const delayMs = allowed ? drainMs : 0;
    if (allowed && commit) {
      const own = !exists || isOwn(limit.policy, cells, at);
      whole += cost * unit;
      backlog = Math.min(whole, full);
      drainMs = Math.ceil(backlog / flow);
      keep(cells, at, whole, atMs, unit, endOnceCharged(own, atMs + drainMs, cells[at + EMPTY_AT] as number));
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
    const resetAfterMs = whole === 0 ? 0 : aheadMs + Math.min(Math.ceil(whole / flow), (cells[at + EMPTY_AT] as number) - atMs);
    return decision(limit, capacity, allowed, remaining, retryAfterMs, resetAfterMs, delayMs, cost, atMs);
  },

  settle(policy, cells, at, nowMs, _chargedAtMs, reserved, cost) {
    // A place passes with its turn: nothing is given back.
    if (cost <= reserved) return 0;
    const { unit, flow, full } = policy;
    // The state keeps its own time and parts, so it changes by as much for every policy.
    const exists = isState(policy, cells, at, nowMs);
    const stored = exists ? (cells[at + BACKLOG] as number) : 0;
    const time = exists ? (cells[at + TIME] as number) : nowMs;
    const stateUnit = exists ? (cells[at + UNIT] as number) : unit;
    const storedEmptyAt = exists ? (cells[at + EMPTY_AT] as number) : nowMs;
    const parts = Math.abs(stateUnit);
    const room = Math.max(Math.min(Math.max(full, deepest) - stored, deepest), 0);
    const units = Math.min(changeOf(reserved, cost), Math.floor(room / parts), Math.floor(deepest / unit));
    if (units === 0) return 0;
    // What passes the capacity becomes a debt, and a debt stays one.
    const backlog = stored + units * parts;
    const debt = stateUnit < 0 || rescale(backlog, parts, unit) > full;
    const own = !exists || isOwn(policy, cells, at);
    const takesMs = Math.ceil((units * unit) / flow);
    const emptyAt = endOnceSettled(own, endOf(policy, backlog, debt, time), storedEmptyAt, takesMs, nowMs);
    keep(cells, at, backlog, time, debt ? -parts : parts, emptyAt);
    return units;
  },
};

function keep(cells: Cells, at: number, backlog: number, time: number, unit: number, emptyAt: number): void {
  cells[at + BACKLOG] = backlog;
  cells[at + TIME] = time;
  cells[at + UNIT] = unit;
  cells[at + EMPTY_AT] = emptyAt;
}
