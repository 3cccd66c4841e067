import { type Duration, durationText, formatDuration, parseDuration } from "../support/duration.js";
import { FloodgateError } from "../support/errors.js";
import { checkOptions, quotaNumber, wholeNumber } from "../support/options.js";
import type { Algorithm, AlgorithmDefinition, Cells, PolicyBase } from "./algorithm.js";
import { changeOf } from "./debt.js";
import { MadeDecision } from "./decision.js";
import { type Rate, rateOf, recoveryMs, rescale } from "./rate.js";
import {
  AMOUNT,
  LEVEL as BACKLOG,
  bucketCells,
  deepestAt,
  flowed,
  isCredible,
  note,
  QUOTA,
  spanAt,
  TIME,
  takesAt,
  unitAt,
} from "./shared.js";
import { emptyView } from "./state-view.js";

/** A first-in-first-out queue that drains at a constant rate. It delays requests, and rejects them when it is full. */
export interface LeakyBucketPolicy extends PolicyBase, Rate {
  readonly algorithm: "leaky-bucket";
  readonly capacity: number;
  readonly leak: number;
  readonly everyMs: number;
  /** A request that would wait longer is rejected, in milliseconds. Infinity if only a full queue rejects. */
  readonly maxDelayMs: number;
}

export interface LeakyBucketOptions {
  /** How many requests the queue holds; 0 rejects every request. */
  capacity: number;
  /** Requests that leave the queue every `every`. */
  leak: number;
  /** How long one leak takes: `"1s"`. */
  every: Duration;
  /** A request that would wait longer, in milliseconds, is rejected. Default: only a full queue rejects. */
  maxDelayMs?: number;
}

/** The longest delay of a JavaScript timer, in milliseconds. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * A queue of `capacity` places that releases `leak` requests per `every`. An accepted request waits `delayMs` for its turn. A full queue
 * rejects, and so does one whose wait would exceed `maxDelayMs`.
 *
 *     leakyBucket({ capacity: 10, leak: 5, every: "1s" })
 */
export function leakyBucket(options: LeakyBucketOptions): LeakyBucketPolicy {
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

/*
 * The level of the state is the backlog after the last charge. It can exceed the capacity of a plan: a larger queue has admitted more, or
 * there is a debt. Then the queue of that plan is full until the excess has drained.
 */

/** When the state's own queue is empty. -Infinity without a state, if no plan can have its numbers, or if it is too far ahead of the clock. */
function endOf(policy: LeakyBucketPolicy, cells: Cells, at: number, nowMs: number): number {
  if (cells[at + QUOTA] === 0 || !isCredible(policy, cells, at)) return Number.NEGATIVE_INFINITY;
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

/** A backlog of `time` at `nowMs`. A product above 2^53 is rounded, but it drains the queue in any case. */
function drained(backlog: number, time: number, nowMs: number, flow: number): number {
  return nowMs > time ? Math.max(backlog - (nowMs - time) * flow, 0) : backlog;
}

const algorithm: Algorithm<LeakyBucketPolicy> = {
  name: "leaky-bucket",
  parameters: ["quota", "unit", "flow", "divisor", "maxDelayMs"],
  cells: bucketCells,
  delays: true,
  // With `maxDelayMs`, nothing may remain before the queue is full.
  used: ({ flow, unit }, { limit, remaining, resetAfterMs }) => Math.min(limit - remaining, Math.ceil((resetAfterMs * flow) / unit)),
  recoveryMs,

  size: () => bucketCells.length,

  decide(limit, cells, at, nowMs, cost, commit) {
    const { capacity, maxDelayMs, unit, flow, divisor, full, spanMs } = limit.policy;
    const time = cells[at + TIME] as number;
    // If no other plan charges the key, the state ends when this plan's queue is empty.
    const own = cells[at + QUOTA] === capacity && cells[at + AMOUNT] === flow * divisor;
    const shared = !own && nowMs < endOf(limit.policy, cells, at, nowMs);
    let backlog = 0;
    if (shared) backlog = backlogAt(limit.policy, cells, at, nowMs);
    else if (own && time - nowMs <= spanMs) backlog = drained(cells[at + BACKLOG] as number, time, nowMs, flow);
    const atMs = time > nowMs && (shared || backlog > 0) ? time : nowMs;
    // The delay comes from the queue alone. A clock that stepped back adds to the retry and the reset instead. The state may end before
    // the backlog has drained at this plan's rate.
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
    return new MadeDecision(limit, cost, { allowed, remaining, retryAfterMs, resetAfterMs, delayMs, atMs });
  },

  settle(policy, cells, at, nowMs, _chargedAtMs, reserved, cost) {
    // A place in the queue is used up when its turn comes, so nothing is given back.
    if (cost <= reserved) return 0;
    // The state has its own parts, so the change is the same for every plan.
    const exists = nowMs < endOf(policy, cells, at, nowMs);
    if (!exists) keep(policy, cells, at, 0, nowMs, true);
    const parts = unitAt(policy, cells, at);
    // The queue drains until now before the debt is added. Otherwise a faster plan could pay the debt with the time of an empty queue.
    const backlog = Math.max((cells[at + BACKLOG] as number) - flowed(policy, parts, cells[at + TIME] as number, nowMs), 0);
    const room = Math.floor((deepestAt(policy, cells, at) - backlog) / parts);
    const units = Math.max(Math.min(changeOf(reserved, cost), room), 0);
    if (units === 0) return 0;
    cells[at + BACKLOG] = backlog + units * parts;
    cells[at + TIME] = Math.max(nowMs, cells[at + TIME] as number);
    return units;
  },

  view(policy, cells, at, nowMs) {
    const { capacity, unit, flow } = policy;
    const endMs = endOf(policy, cells, at, nowMs);
    const backlog = nowMs < endMs ? backlogAt(policy, cells, at, nowMs) : 0;
    if (backlog === 0) return emptyView;
    const drainedAtMs = Math.min(Math.max(nowMs, cells[at + TIME] as number) + Math.ceil(backlog / flow), endMs);
    return { kind: "queue", length: backlog / unit, capacity, drainedAtMs };
  },
};

/** Writes a backlog in the policy's own parts. */
function keep(policy: LeakyBucketPolicy, cells: Cells, at: number, backlog: number, time: number, begins: boolean): void {
  note(policy, cells, at, begins);
  cells[at + BACKLOG] = rescaleUp(backlog, policy.unit, unitAt(policy, cells, at));
  cells[at + TIME] = time;
}

export const leakyBucketDefinition: AlgorithmDefinition<LeakyBucketPolicy, LeakyBucketOptions> = {
  numbers: ["capacity", "leak", "every", "maxDelayMs"],
  make: leakyBucket,
  optionsOf,
  share: (policy, part, processes) =>
    leakyBucket({ ...optionsOf(policy), capacity: part(policy.capacity), every: durationText(policy.everyMs * processes) }),
  describe({ capacity, leak, everyMs, maxDelayMs }) {
    const maxWait = maxDelayMs === Number.POSITIVE_INFINITY ? "" : `, waiting at most ${formatDuration(maxDelayMs)}`;
    return `${leak} every ${formatDuration(everyMs)} from a queue of ${capacity}${maxWait}`;
  },
  algorithms: [algorithm],
};

function optionsOf({ capacity, leak, everyMs, maxDelayMs }: LeakyBucketPolicy): LeakyBucketOptions {
  const queue = { capacity, leak, every: durationText(everyMs) };
  return maxDelayMs === Number.POSITIVE_INFINITY ? queue : { ...queue, maxDelayMs };
}
