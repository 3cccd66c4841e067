import { type Duration, durationText, formatDuration, parseDuration } from "../support/duration.js";
import { FloodgateError } from "../support/errors.js";
import { checkOptions, quotaNumber, wholeNumber } from "../support/options.js";
import { type Algorithm, type AlgorithmDefinition, emptyView, type PolicyBase, register } from "./algorithm.js";
import { changeOf } from "./debt.js";
import { MadeDecision } from "./decision.js";
import {
  AMOUNT,
  bucketCells,
  chargeIn,
  endOf,
  keep,
  LEVEL,
  missingAt,
  QUOTA,
  type Rate,
  rateOf,
  recoveryMs,
  TIME,
} from "./smooth-bucket.js";

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
    const shared = !own && nowMs < endOf(limit.policy, cells, at, nowMs, "queue");
    // It can exceed the capacity of a plan: a larger queue has admitted more, or there is a debt.
    let backlog = 0;
    if (shared) backlog = missingAt(limit.policy, cells, at, nowMs, "queue");
    else if (own && time - nowMs <= spanMs) {
      backlog = cells[at + LEVEL] as number;
      // A product above 2^53 is rounded, but it drains the queue in any case.
      if (nowMs > time) backlog = Math.max(backlog - (nowMs - time) * flow, 0);
    }
    const atMs = time > nowMs && (shared || backlog > 0) ? time : nowMs;
    // The delay comes from the queue alone. A clock that stepped back adds to the retry and the reset instead. The state may end before
    // the backlog has drained at this plan's rate.
    let drainMs = Math.ceil(backlog / flow);
    if (shared) drainMs = Math.min(drainMs, endOf(limit.policy, cells, at, nowMs, "queue") - atMs);
    const allowed = cost <= capacity && cost * unit <= full - backlog && drainMs <= maxDelayMs;
    const delayMs = allowed ? drainMs : 0;
    if (allowed && commit) {
      backlog += cost * unit;
      drainMs = Math.ceil(backlog / flow);
      if (shared) {
        keep(limit.policy, cells, at, backlog, atMs, false, "queue");
        drainMs = Math.min(drainMs, endOf(limit.policy, cells, at, nowMs, "queue") - atMs);
      } else {
        cells[at + LEVEL] = backlog;
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

  // A place in the queue is used up when its turn comes, so nothing is given back.
  settle: (policy, cells, at, nowMs, _chargedAtMs, reserved, cost) =>
    cost > reserved ? chargeIn(policy, cells, at, nowMs, changeOf(reserved, cost), "queue") : 0,

  view(policy, cells, at, nowMs) {
    const { capacity, unit, flow } = policy;
    const endMs = endOf(policy, cells, at, nowMs, "queue");
    const backlog = nowMs < endMs ? missingAt(policy, cells, at, nowMs, "queue") : 0;
    if (backlog === 0) return emptyView;
    const drainedAtMs = Math.min(Math.max(nowMs, cells[at + TIME] as number) + Math.ceil(backlog / flow), endMs);
    return { kind: "queue", length: backlog / unit, capacity, drainedAtMs };
  },
};

export const leakyBucketDefinition: AlgorithmDefinition<LeakyBucketPolicy, LeakyBucketOptions> = register("leaky-bucket", {
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
});

function optionsOf({ capacity, leak, everyMs, maxDelayMs }: LeakyBucketPolicy): LeakyBucketOptions {
  const queue = { capacity, leak, every: durationText(everyMs) };
  return maxDelayMs === Number.POSITIVE_INFINITY ? queue : { ...queue, maxDelayMs };
}
