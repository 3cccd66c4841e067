import {
  calendarWindow,
  concurrency,
  type Duration,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { algorithmOf } from "@floodgate/core/store";
import * as fc from "fast-check";
import {
  calendarOf,
  calendarWindowRules,
  counterRules,
  fixedWindowRules,
  intervalRules,
  logRules,
  queueRules,
  type Rules,
  slotRules,
  smoothRules,
} from "./model-rules.js";

type Name = Policy["algorithm"];
type PolicyOf<N extends Name> = Extract<Policy, { algorithm: N }>;

/** What was settled while units passed. Bounds count units by their real cost. */
interface Meanwhile {
  /** Debts were paid off: then a refill may add more than the bucket holds. */
  readonly owing?: boolean;
  /** Units came back: then a bucket may lack nothing although it keeps the spacing of its refills. */
  readonly refunded?: boolean;
}

/** What the suite has to know of an algorithm, to judge how a store hosts it. It shares no code with the algorithm itself. */
interface Judged<P> {
  /** The definition, for the model. */
  readonly rules: (policy: P) => Rules<unknown>;
  /** See `mostIn`. */
  readonly mostIn: (policy: P, fromMs: number, stretchMs: number, meanwhile: Meanwhile) => bigint;
  /** Two plans combined: the larger quota and amount, and the larger of what else differs. */
  readonly larger: (a: P, b: P, quota: number, amount: number) => P;
  /** Small policies of all options. */
  readonly small: fc.Arbitrary<P>;
  readonly variants: readonly VariantOf[];
}

/** One way to count, as it is written here. */
interface VariantOf {
  readonly name: string;
  /** A policy that allows `quota` at once, and `amount` more each `every` (a window: the quota). */
  readonly of: (quota: number, amount: number, every: Duration) => Policy;
  /**
   * A time for plans that share a count. A bucket's rates share no factor with it, so all plans use the same fraction of a unit, and a
   * change of plan rounds nothing. Default: a second.
   */
  readonly every?: Duration;
  /** A policy that counts apart from those. */
  readonly other: (quota: number) => Policy;
  /** What remains of `quota` after another plan, with the quota `before`, took `taken`. Default: what was not taken. */
  readonly left?: (quota: number, taken: number, before: number) => number;
}

export type Variant = Required<VariantOf>;

const untaken = (quota: number, taken: number): number => Math.max(0, quota - taken);
const kept = (quota: number, taken: number, before: number): number => Math.min(quota, before - taken);

const ms = (n: number): Duration => `${BigInt(n)}ms`;
const quota = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 30 }));
const amount = fc.integer({ min: 1, max: 12 });
const timeMs = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constantFrom(7, 97, 100, 1000, 60_000));
const time = timeMs.map(ms);

const flowed = (amount: number, everyMs: number, stretchMs: number): bigint => (BigInt(amount) * BigInt(stretchMs)) / BigInt(everyMs);

/** An algorithm that is missing here is an error of the compiler. */
const judged: { readonly [N in Name]: Judged<PolicyOf<N>> } = {
  "fixed-window": {
    rules: ({ limit, windowMs }) => fixedWindowRules(limit, windowMs),
    mostIn: ({ limit, windowMs }, fromMs, stretchMs) =>
      BigInt(limit) * BigInt(Math.floor((fromMs + stretchMs) / windowMs) - Math.floor(fromMs / windowMs) + 1),
    larger: ({ windowMs }, _, limit) => fixedWindow({ limit, window: ms(windowMs) }),
    small: fc.record({ limit: quota, window: time }).map(fixedWindow),
    variants: [
      {
        name: "fixed window",
        of: (limit, _, window) => fixedWindow({ limit, window }),
        other: (limit) => fixedWindow({ limit, window: 2000 }),
      },
    ],
  },
  "calendar-window": {
    rules: calendarWindowRules,
    mostIn(policy, fromMs, stretchMs) {
      const { of } = calendarOf(policy);
      return BigInt(policy.limit) * BigInt(of(fromMs + stretchMs) - of(fromMs) + 1);
    },
    larger: ({ per, timeZone, startsOn }, _, limit) =>
      calendarWindow({ limit, per, timeZone, ...(startsOn !== undefined && { startsOn }) }),
    small: fc
      .record({
        limit: quota,
        timeZone: fc.constantFrom("UTC", "Etc/GMT-5"),
        unit: fc.oneof(
          fc.record({ per: fc.constantFrom("hour" as const, "day", "year") }),
          fc.record({ per: fc.constant("week" as const), startsOn: fc.constantFrom("monday" as const, "wednesday", "sunday") }),
          fc.record({ per: fc.constant("month" as const), startsOn: fc.integer({ min: 1, max: 31 }) }),
        ),
      })
      .map(({ unit, ...rest }) => calendarWindow({ ...rest, ...unit })),
    variants: [
      {
        name: "calendar window",
        of: (limit) => calendarWindow({ limit, per: "hour", timeZone: "Etc/GMT-5" }),
        other: (limit) => calendarWindow({ limit, per: "hour" }),
      },
    ],
  },
  "sliding-window-log": {
    rules: logRules,
    mostIn: ({ limit, windowMs }, _, stretchMs) => BigInt(limit) * BigInt(Math.floor(stretchMs / windowMs) + 1),
    larger: (a, b, limit) => slidingWindowLog({ limit, window: ms(a.windowMs), countRejected: a.countRejected && b.countRejected }),
    small: fc.record({ limit: quota, window: time, countRejected: fc.boolean() }).map(slidingWindowLog),
    variants: [
      {
        name: "sliding log",
        of: (limit, _, window) => slidingWindowLog({ limit, window }),
        other: (limit) => slidingWindowLog({ limit, window: 2000 }),
      },
    ],
  },
  "sliding-window-counter": {
    rules: counterRules,
    mostIn({ limit, buckets, strict, bucketMs }, fromMs, stretchMs) {
      // All whole sub-windows of one window admit at most the limit together. If it is strict, so do they with the one before them.
      const first = Math.floor(fromMs / bucketMs);
      const last = Math.floor((fromMs + stretchMs) / bucketMs);
      return BigInt(limit) * BigInt(Math.floor((last - first) / (strict ? buckets + 1 : buckets)) + 1);
    },
    larger: ({ windowMs, buckets, strict }, other, limit) =>
      slidingWindowCounter({ limit, window: ms(windowMs), buckets, strict: strict && other.strict }),
    small: fc
      .record({ limit: quota, width: timeMs, buckets: fc.integer({ min: 1, max: 6 }), strict: fc.boolean() })
      .map(({ limit, width, buckets, strict }) =>
        slidingWindowCounter({ limit, window: ms(width * buckets), buckets, strict: strict && buckets > 1 }),
      ),
    variants: [
      {
        name: "sliding counter",
        of: (limit, _, window) => slidingWindowCounter({ limit, window, buckets: 4 }),
        other: (limit) => slidingWindowCounter({ limit, window: 1000, buckets: 5 }),
      },
      {
        name: "strict sliding counter",
        of: (limit, _, window) => slidingWindowCounter({ limit, window, buckets: 4, strict: true }),
        other: (limit) => slidingWindowCounter({ limit, window: 1000, buckets: 5 }),
      },
      {
        name: "two counters",
        of: (limit, _, window) => slidingWindowCounter({ limit, window }),
        other: (limit) => slidingWindowCounter({ limit, window: 1000, buckets: 2 }),
      },
    ],
  },
  "token-bucket": {
    rules: (policy) => (policy.style === "interval" ? intervalRules(policy) : smoothRules(policy.capacity, policy.refill, policy.everyMs)),
    mostIn({ capacity, refill, everyMs, style }, _, stretchMs, { owing, refunded }) {
      if (style === "smooth") return BigInt(capacity) + flowed(refill, everyMs, stretchMs);
      return mostByInterval(capacity, owing ? refill : Math.min(refill, capacity), stretchMs / everyMs, refunded);
    },
    larger: ({ everyMs, style }, _, capacity, refill) => tokenBucket({ capacity, refill, every: ms(everyMs), style }),
    small: fc
      .record({ capacity: quota, refill: amount, every: time, style: fc.constantFrom("smooth" as const, "interval" as const) })
      .map(tokenBucket),
    variants: [
      {
        name: "smooth token bucket",
        of: (capacity, refill, every) => tokenBucket({ capacity, refill, every }),
        every: "997ms",
        other: (capacity) => tokenBucket({ capacity, refill: 5, every: "1001ms" }),
        left: kept,
      },
      {
        name: "interval token bucket",
        of: (capacity, refill, every) => tokenBucket({ capacity, refill, every, style: "interval" }),
        every: "997ms",
        other: (capacity) => tokenBucket({ capacity, refill: 5, every: "997ms", style: "smooth" }),
        left: kept,
      },
    ],
  },
  "leaky-bucket": {
    rules: queueRules,
    mostIn: ({ capacity, leak, everyMs }, _, stretchMs) => BigInt(capacity) + flowed(leak, everyMs, stretchMs),
    larger(a, b, capacity, leak) {
      const maxDelayMs = Math.max(a.maxDelayMs, b.maxDelayMs);
      return leakyBucket({ capacity, leak, every: ms(a.everyMs), ...(Number.isFinite(maxDelayMs) ? { maxDelayMs } : {}) });
    },
    small: fc
      .record({ capacity: quota, leak: amount, every: time, maxDelayMs: fc.nat(200) }, { requiredKeys: ["capacity", "leak", "every"] })
      .map(leakyBucket),
    variants: [
      {
        name: "leaky bucket",
        // With the longest wait that a timer holds, no size is refused.
        of: (capacity, leak, every) => leakyBucket({ capacity, leak, every, maxDelayMs: 2 ** 31 - 1 }),
        every: "997ms",
        other: (capacity) => leakyBucket({ capacity, leak: 5, every: "1001ms" }),
      },
    ],
  },
  gcra: {
    rules: ({ burst, limit, windowMs }) => smoothRules(burst, limit, windowMs),
    mostIn: ({ burst, limit, windowMs }, _, stretchMs) => BigInt(burst) + flowed(limit, windowMs, stretchMs),
    larger: ({ windowMs }, _, burst, limit) => gcra({ burst, limit, window: ms(windowMs) }),
    small: fc.record({ limit: quota, window: time, burst: quota }, { requiredKeys: ["limit", "window"] }).map(gcra),
    variants: [
      {
        name: "gcra",
        of: (burst, limit, window) => gcra({ burst, limit, window }),
        every: "997ms",
        other: (limit) => gcra({ limit, window: 2000 }),
        left: kept,
      },
    ],
  },
  concurrency: {
    rules: slotRules,
    mostIn: ({ limit, holdMs }, _, stretchMs) => BigInt(limit) * BigInt(Math.floor(stretchMs / holdMs) + 1),
    larger: ({ holdMs }, _, limit) => concurrency({ limit, hold: ms(holdMs) }),
    small: fc.record({ limit: quota, hold: time }).map(concurrency),
    variants: [
      {
        name: "concurrency",
        of: (limit, _, hold) => concurrency({ limit: Math.min(limit, 10_000), hold }),
        other: (limit) => concurrency({ limit, hold: 2000 }),
      },
    ],
  },
};

const all: readonly Judged<Policy>[] = Object.values(judged) as unknown as Judged<Policy>[];
const judgedOf = ({ algorithm }: Policy): Judged<Policy> => judged[algorithm] as unknown as Judged<Policy>;

/** Whether a policy counts in windows or a log, which end. */
export function isWindow({ algorithm }: Policy): boolean {
  return algorithm.includes("window");
}

/** Every way to count. */
export const variants: readonly Variant[] = all.flatMap(({ variants }) =>
  variants.map((variant) => ({ every: 1000, left: untaken, ...variant })),
);

/** Small policies of every algorithm. A token bucket counts in two ways, so it stands for two. */
export const policies: fc.Arbitrary<Policy> = fc.oneof(
  ...all.map(({ small, variants }) => ({ weight: variants.length, arbitrary: small })),
);

/** Small policies of every algorithm, without `countRejected`. */
export const forgivingPolicies: fc.Arbitrary<Policy> = policies.filter((policy) => !algorithmOf(policy).countsRejected?.(policy));

/** The definition of a policy's algorithm. */
export function rulesOf(policy: Policy): Rules<unknown> {
  return judgedOf(policy).rules(policy);
}

/** Combines plans of one kind: the largest of each number. */
export function largestOf(plans: readonly Policy[]): Policy {
  return plans.reduce((a, b) => {
    if (b.stateKind !== a.stateKind) throw new TypeError(`${a.stateKind} and ${b.stateKind} count apart`);
    return judgedOf(a).larger(a, b, Math.max(a.quota, b.quota), Math.max(amountOf(a), amountOf(b)));
  });
}

/** The units that a bucket regains (or drains) each `every`, and a window regains each window. */
export function amountOf(policy: Policy): number {
  return "refill" in policy ? policy.refill : "leak" in policy ? policy.leak : policy.limit;
}

/** The most units that may pass from `fromMs` to `fromMs + stretchMs`, both ends included. */
export function mostIn(policy: Policy, fromMs: number, stretchMs: number, meanwhile: Meanwhile = {}): bigint {
  return judgedOf(policy).mostIn(policy, fromMs, stretchMs, meanwhile);
}

/**
 * Refills are evenly spaced until the bucket is full; the next request on a full bucket restarts the spacing. So there are two cases:
 * a full bucket and refills after whole intervals, or a bucket that lacks one token and a first refill at any moment.
 */
function mostByInterval(capacity: number, refill: number, intervals: number, refunded = false): bigint {
  const full = BigInt(capacity) + BigInt(refill) * BigInt(Math.floor(intervals));
  const running = BigInt(refunded ? capacity : capacity - 1) + BigInt(refill) * BigInt(Math.ceil(intervals));
  return full > running ? full : running;
}
