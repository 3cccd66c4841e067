import * as assert from "node:assert/strict";
import {
  consumeAll,
  type Decision,
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { asCharge, createLimit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { policies, variants } from "./algorithms.js";
import { agreesWithModel } from "./bounds.js";
import { type Outcome, playAll, scripts, scriptsOf } from "./scripts.js";
import type { Suite, World } from "./world.js";

/** Policies whose products come close to 2^53, the limit of exact integers. */
export function largeCases(suite: Suite): void {
  for (const [name, policy] of largePolicies) {
    suite.it(`are exact to the last unit and millisecond: ${name}`, async (world) => {
      await fc.assert(
        fc.asyncProperty(scripts(policy, { refunds: true, settles: true, longest: 15 }), (steps) => agreesWithModel(world, policy, steps)),
        world.runs(30),
      );
    });
  }

  suite.it(
    "a limit of Number.MAX_SAFE_INTEGER is exact: unused, used by several at once, inspected, and beside a limit that rejects",
    async (world) => {
      const limit = Number.MAX_SAFE_INTEGER;
      for (const policy of [fixedWindow({ limit, window: "365d" }), slidingWindowLog({ limit, window: "365d" })]) {
        const [unlimited, key] = [world.limiter(policy), world.fresh()];
        assert.equal((await unlimited.peek(key)).remaining, limit);
        assert.equal((await unlimited.keyState(key)).decision.remaining, limit);

        const closed = world.limiter(fixedWindow({ limit: 1, window: "365d" }));
        await closed.consume(key);
        const both = await consumeAll([
          { limiter: unlimited, key },
          { limiter: closed, key },
        ]);
        assert.deepEqual(both.all.map(verdictOf), [
          { allowed: true, remaining: limit },
          { allowed: false, remaining: 0 },
        ]);

        const decided = await Promise.all([3, 3, 3, 3, 3].map((cost) => unlimited.consume(key, { cost })));
        const remaining = [3, 6, 9, 12, 15].map((used) => limit - used);
        assert.deepEqual(
          decided.map(verdictOf).sort((one, other) => other.remaining - one.remaining),
          remaining.map((remaining) => ({ allowed: true, remaining })),
        );
        assert.equal((await unlimited.keyState(key)).decision.remaining, limit - 15);
      }
    },
  );

  suite.it("a window and a log decide on numbers up to 2^53 as on small ones", async (world) => {
    const countsRejected = (policy: Policy): boolean => "countRejected" in policy && policy.countRejected;
    const counted = policies.filter(({ algorithm }) => algorithm === "fixed-window" || algorithm === "sliding-window-log");
    const lives = fc.oneof(
      scriptsOf(
        counted.filter((policy) => !countsRejected(policy)),
        { refunds: true, jumps: true, longest: 40 },
      ),
      // A rejection that fills a log of such numbers may begin a state of its own, to which no earlier charge belongs.
      scriptsOf(counted.filter(countsRejected), { jumps: true, longest: 40 }),
    );
    // The most that one refund gives back.
    const max = Number.MAX_SAFE_INTEGER - 63;
    const largest = fc.oneof(fc.constant(max), fc.integer({ min: 2 ** 50, max }));
    await fc.assert(
      fc.asyncProperty(lives, largest, async ([policy, steps], most) => {
        const times = Math.floor(most / policy.quota);
        const scaled = steps.map((step) => ("cost" in step ? { ...step, cost: step.cost * times } : step));
        const options = { limit: policy.quota * times, window: `${BigInt(policy.spanMs)}ms` } as const;
        const log = (): Policy => slidingWindowLog({ ...options, countRejected: countsRejected(policy) });
        const larger = policy.algorithm === "fixed-window" ? fixedWindow(options) : log();
        const decided = await playAll(world, world.limiter(policy), "key", steps);
        const outcomes = await playAll(world, world.limiter(larger), "key", scaled);
        for (const [i, outcome] of outcomes.entries()) {
          const small = decided[i] as Outcome;
          assert.deepEqual(numbersOf(outcome, 1), numbersOf(small, times), `step ${i}`);
        }
      }),
      world.runs(100),
    );
  });

  suite.it("a policy of any size is refused, or refunds a full charge in full and can owe as much again", async (world) => {
    const share = fc.double({ min: 0, max: 0.99, noNaN: true });
    await fc.assert(
      fc.asyncProperty(anySize, share, async (policy, factor) => {
        if (policy !== undefined) await settlesExactly(world, policy, world.fresh(), factor);
      }),
      world.runs(300),
    );
  });

  suite.it("a policy of any size decides in whole numbers, whatever the cost and however the clock jumps", async (world) => {
    const options = { refunds: true, jumps: true, impossible: true };
    const playable = anySize.filter((policy): policy is Policy => policy !== undefined && policy.spanMs <= longestSpanMs);
    const any = playable.chain((policy) => fc.tuple(fc.constant(policy), scripts(policy, options)));
    await fc.assert(
      fc.asyncProperty(any, async ([policy, steps]) => {
        const outcomes = await playAll(world, world.limiter(policy), world.fresh(), steps);
        for (const outcome of outcomes) if (typeof outcome !== "number") checkNumbers(outcome);
      }),
      world.runs(100),
    );
  });
}

const verdictOf = ({ allowed, remaining }: Decision) => ({ allowed, remaining });

/** All numbers of an outcome, its units multiplied. */
function numbersOf(outcome: Outcome, times: number): unknown {
  if (typeof outcome === "number") return outcome * times;
  const { allowed, remaining, retryAfterMs, resetAfterMs, atMs } = outcome;
  return { allowed, remaining: remaining * times, retryAfterMs, resetAfterMs, atMs };
}

/** Within a script of such spans, no clock leaves the range of `Date`. */
const longestSpanMs = 1e13;

const yearMs = 365 * 86_400_000;

/** Policies of any size. Making a policy throws if its numbers are too large for exact arithmetic. */
const anySize: fc.Arbitrary<Policy | undefined> = fc
  .record({
    kind: fc.constantFrom(...variants),
    quota: fc.oneof(fc.integer({ min: 1, max: 1e10 }), fc.integer({ min: 1, max: 2 ** 50 })),
    amount: fc.oneof(
      fc.integer({ min: 1, max: 1e8 }),
      fc.integer({ min: 1, max: 2 ** 50 }),
      // Whole years' worth a millisecond: such amounts may come close to 2^53.
      fc.integer({ min: 1, max: Math.floor(Number.MAX_SAFE_INTEGER / yearMs) }).map((each) => each * yearMs),
    ),
    every: fc.constantFrom("1s", "1m", "1h", "1d", "365d"),
  })
  .map(({ kind, quota, amount, every }) => {
    try {
      return kind.of(quota, amount, every);
    } catch (error) {
      assert.equal((error as { code?: unknown }).code, "FLOODGATE_POLICY_TOO_LARGE");
      return undefined;
    }
  });

async function settlesExactly({ store }: World, policy: Policy, key: string, factor: number): Promise<void> {
  const limit = createLimit("any", policy);
  const { quota } = policy;
  const whole = await store.consume(limit, key, quota);
  assert.equal(whole.allowed, true);
  if (policy.algorithm !== "leaky-bucket") {
    assert.equal(await store.settle(limit, key, asCharge(whole), 0), -quota);
    assert.equal((await store.peek(limit, key)).remaining, quota);
  }
  await store.reset(limit, key);
  // Nobody owes a slot.
  const more = policy.algorithm === "concurrency" ? 0 : Math.ceil(quota * factor);
  const again = await store.consume(limit, key, quota);
  assert.equal(await store.settle(limit, key, asCharge(again), quota + more), more);
  assert.equal((await store.peek(limit, key)).remaining, 0);
}

export const largePolicies: readonly (readonly [string, Policy])[] = [
  ["ten million a day", gcra({ limit: 10_000_000, window: "1d" })],
  ["ten million a day in a fixed window", fixedWindow({ limit: 10_000_000, window: "1d" })],
  ["a million a minute", tokenBucket({ capacity: 1_000_000, refill: 1_000_000, every: "1m" })],
  ["a million a minute by interval", tokenBucket({ capacity: 1_000_000, refill: 999_983, every: "1m", style: "interval" })],
  ["ten thousand a second through a queue", leakyBucket({ capacity: 10_000, leak: 10_000, every: "1s" })],
  ["a million an hour through the sliding counter", slidingWindowCounter({ limit: 1_000_000, window: "1h" })],
  ["one a year", gcra({ limit: 1, window: "365d" })],
  ["a log of one a year", slidingWindowLog({ limit: 1, window: "365d" })],
  ["a fixed window of a year", fixedWindow({ limit: 5, window: "365d" })],
  ["a sliding counter of a year", slidingWindowCounter({ limit: 1000, window: "365d", buckets: 5 })],
  ["seven a year by interval", tokenBucket({ capacity: 10, refill: 7, every: "365d", style: "interval" })],
  ["a queue of a day's requests", leakyBucket({ capacity: 24, leak: 1, every: "1h" })],
];

/** Numbers are whole and not negative, and `remaining` does not exceed the limit. */
export function checkNumbers(decision: Decision): void {
  const { limit, remaining, retryAfterMs, resetAfterMs, delayMs, cost, atMs } = decision;
  for (const [name, value] of Object.entries({ limit, remaining, resetAfterMs, delayMs })) {
    assert.ok(Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0), `${name} is ${value}`);
  }
  // Below 0 if the clock has jumped to a time before 1970.
  assert.ok(Number.isSafeInteger(atMs) && !Object.is(atMs, -0), `atMs is ${atMs}`);
  if (cost > limit) assert.equal(retryAfterMs, Number.POSITIVE_INFINITY);
  else assert.ok(Number.isSafeInteger(retryAfterMs) && retryAfterMs >= 0, `retryAfterMs is ${retryAfterMs}`);
  assert.ok(remaining <= limit, `${remaining} of ${limit} remain`);
}
