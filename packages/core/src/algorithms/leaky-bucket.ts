import { type Duration, durationOption, durationText } from "../support/duration.js";
import { FloodgateError } from "../support/errors.js";
import { checkOptions, quotaNumber, wholeNumber } from "../support/options.js";
import { type Algorithm, type AlgorithmDefinition, emptyView, type PolicyBase, register } from "./algorithm.js";
import { changeOf } from "./debt.js";
import { chargeIn, endOf, missingAt, type Rate, rateOf, smoothBucket, TIME } from "./smooth-bucket.js";

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
const maxTimerMs = 2 ** 31 - 1;

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
  const everyMs = durationOption(where, "every", options.every);
  const rate = rateOf(where, capacity, leak, everyMs);
  const longest = Math.ceil(((capacity - 1) * rate.unit) / rate.flow);
  const maxDelayMs =
    options.maxDelayMs === undefined ? Number.POSITIVE_INFINITY : wholeNumber(where, "maxDelayMs", options.maxDelayMs, 0, 5000);
  if (Math.min(maxDelayMs, longest) > maxTimerMs) {
    throw new FloodgateError(
      "FLOODGATE_POLICY_TOO_LARGE",
      `${where}: the last in a queue of ${capacity} would wait ${longest} ms, longer than a timer holds (${maxTimerMs} ms). Lower the capacity, raise the leak, or write maxDelayMs: 30000.`,
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
  ...smoothBucket,
  name: "leaky-bucket",
  parameters: ["quota", "unit", "flow", "divisor", "maxDelayMs"],
  delays: true,
  // With `maxDelayMs`, nothing may remain before the queue is full.
  used: ({ flow, unit }, { limit, remaining, resetAfterMs }) => Math.min(limit - remaining, Math.ceil((resetAfterMs * flow) / unit)),

  // A place in the queue is used up when its turn comes, so nothing is given back.
  settle: (policy, cells, at, nowMs, _chargedAtMs, reserved, cost) =>
    cost > reserved ? chargeIn(policy, cells, at, nowMs, changeOf(reserved, cost)) : 0,

  view(policy, cells, at, nowMs) {
    const { capacity, unit, flow } = policy;
    const endMs = endOf(policy, cells, at, nowMs);
    const backlog = nowMs < endMs ? missingAt(policy, cells, at, nowMs) : 0;
    if (backlog === 0) return emptyView;
    const drainedAtMs = Math.min(Math.max(nowMs, cells[at + TIME] as number) + Math.ceil(backlog / flow), endMs);
    return { kind: "queue", length: backlog / unit, capacity, drainedAtMs };
  },
};

export const leakyBucketDefinition: AlgorithmDefinition<LeakyBucketPolicy, LeakyBucketOptions> = register("leaky-bucket", {
  numbers: ["capacity", "leak", "every", "maxDelayMs"],
  make: leakyBucket,
  optionsOf: ({ capacity, leak, everyMs, maxDelayMs }) => ({
    capacity,
    leak,
    every: durationText(everyMs),
    maxDelayMs: maxDelayMs === Number.POSITIVE_INFINITY ? undefined : maxDelayMs,
  }),
  share: ({ capacity, everyMs }, part, processes) => ({ capacity: part(capacity), every: durationText(everyMs * processes) }),
  algorithms: [algorithm],
});
