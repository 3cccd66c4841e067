import { fixedWindow, gcra, leakyBucket, type Policy, slidingWindowCounter, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { algorithmOf, heldPolicy } from "@floodgate/core/store";
import * as fc from "fast-check";
import { variants } from "../../conformance/src/store/algorithms.js";
import { planOf } from "../../conformance/src/store/plans.js";

/** Plans: policies with the same algorithm and times but different numbers, so they share one state. */
export type Plans = readonly Policy[];

const ms = (n: number) => `${BigInt(n)}ms` as const;

interface Scale {
  readonly quota: fc.Arbitrary<number>;
  /** The limits of windows and logs, which multiply nothing. */
  readonly limit: fc.Arbitrary<number>;
  readonly timeMs: fc.Arbitrary<number>;
  readonly delay: fc.Arbitrary<{ maxDelayMs?: number }>;
}

const quota = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 30 }));
const delay = fc.oneof(fc.constant({}), fc.record({ maxDelayMs: fc.nat(200) }));

const small: Scale = {
  quota,
  limit: quota,
  timeMs: fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constantFrom(7, 97, 100, 1000, 60_000)),
  delay,
};

const million = fc.integer({ min: 1, max: 1_000_000 });

/** Plans whose numbers or products come close to 2^53. */
const large: Scale = {
  quota: million,
  limit: fc.oneof(million, fc.integer({ min: 2 ** 50, max: Number.MAX_SAFE_INTEGER })),
  timeMs: fc.integer({ min: 1, max: 2_000_000_000 }),
  delay: fc.record({ maxDelayMs: fc.nat(2 ** 31 - 1) }),
};

/** Plans with times so short that the server's clock passes them within a few steps. */
const short: Scale = { quota, limit: quota, timeMs: fc.integer({ min: 1, max: 12 }), delay };

function plansOf({ quota, limit, timeMs, delay }: Scale): fc.Arbitrary<Plans> {
  const several = <Times, Numbers>(times: fc.Arbitrary<Times>, numbers: fc.Arbitrary<Numbers>, make: (all: Times & Numbers) => Policy) =>
    fc
      .tuple(times, fc.array(numbers, { minLength: 1, maxLength: 3 }))
      .map(([time, plans]) => plans.map((plan): Policy => make({ ...time, ...plan })));
  const window = fc.record({ window: timeMs.map(ms) });
  const every = fc.record({ every: timeMs.map(ms) });
  const bucket = fc.record({ capacity: quota, refill: fc.oneof(fc.integer({ min: 1, max: 12 }), quota) });
  const queue = fc.tuple(fc.record({ capacity: quota, leak: quota }), delay).map(([options, longest]) => ({ ...options, ...longest }));
  const buckets = fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { weight: 4, arbitrary: fc.integer({ min: 2, max: 7 }) },
    { weight: 1, arbitrary: fc.integer({ min: 95, max: 300 }) },
  );
  return fc.oneof(
    several(window, fc.record({ limit }), fixedWindow),
    several(window, fc.record({ limit, countRejected: fc.boolean() }), slidingWindowLog),
    several(fc.record({ width: timeMs, buckets }), fc.record({ limit: quota }), ({ width, ...options }) =>
      slidingWindowCounter({ ...options, window: ms(width * options.buckets) }),
    ),
    several(every, bucket, tokenBucket),
    several(every, bucket, (options) => tokenBucket({ ...options, style: "interval" })),
    several(every, queue, leakyBucket),
    several(window, fc.record({ limit: quota, burst: quota }), gcra),
    // Every algorithm that there is.
    fc
      .tuple(fc.constantFrom(...variants), fc.array(fc.tuple(quota, quota), { minLength: 1, maxLength: 3 }))
      .map(([kind, plans]) => plans.map((plan): Policy => planOf(kind, plan))),
  );
}

export const smallPlans: fc.Arbitrary<Plans> = plansOf(small);
export const largePlans: fc.Arbitrary<Plans> = plansOf(large);
export const shortPlans: fc.Arbitrary<Plans> = plansOf(short);

/** The same plans. Some of them hold their units. */
export function orHeld(plans: fc.Arbitrary<Plans>): fc.Arbitrary<Plans> {
  const timeMs = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constantFrom(1000, 60_000, 2_000_000_000));
  const holdMs = fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: timeMs });
  return fc
    .tuple(plans, holdMs)
    .map(([made, holdMs]) => (made.every(mayHold) ? made.map((policy) => heldPolicy("plans", policy, holdMs)) : made));
}

function mayHold(policy: Policy): boolean {
  const { delays, countsRejected, renew } = algorithmOf(policy);
  return !delays && !renew && !countsRejected?.(policy);
}
