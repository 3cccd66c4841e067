import assert from "node:assert/strict";
import fc from "fast-check";
import { forgivingPolicies, mostIn, policies } from "../../../conformance/src/store/algorithms.js";
import { checkNumbers } from "../../../conformance/src/store/large.js";
import { playAll, replayed, scriptsOf } from "../../../conformance/src/store/scripts.js";
import type { Decision } from "../../src/index.js";
import type { LeakyBucketPolicy } from "../../src/store.js";
import { it } from "./in-world.js";

it("a request passes after retryAfterMs and not one millisecond earlier", async (world) => {
  await fc.assert(
    fc.asyncProperty(scriptsOf(policies, { settles: true, backwards: true, longest: 10 }), async ([policy, steps]) => {
      const limiter = world.limiter(policy);
      const outcomes = await playAll(world, limiter, world.fresh(), steps);
      for (const [index, outcome] of outcomes.entries()) {
        if (typeof outcome === "number") continue;
        const { retryAfterMs, cost } = outcome;
        const past = steps.slice(0, index + 1);
        const nowMs = (steps[index] as { atMs: number }).atMs;
        const onTime = await replayed(world, limiter, past);
        world.nowMs = nowMs + retryAfterMs;
        assert.equal((await limiter.consume(onTime, { cost })).allowed, true, `step ${index}, after ${retryAfterMs} ms`);
        if (retryAfterMs === 0) continue;
        const early = await replayed(world, limiter, past);
        world.nowMs = nowMs + retryAfterMs - 1;
        assert.equal((await limiter.consume(early, { cost })).allowed, false, `step ${index}, one before ${retryAfterMs} ms`);
      }
    }),
    world.runs(100),
  );
});

it("remaining is the largest cost that passes", async (world) => {
  await fc.assert(
    fc.asyncProperty(scriptsOf(policies, { settles: true, backwards: true, longest: 10 }), async ([policy, steps]) => {
      const limiter = world.limiter(policy);
      const outcomes = await playAll(world, limiter, world.fresh(), steps);
      for (const [index, outcome] of outcomes.entries()) {
        if (typeof outcome === "number") continue;
        const { remaining } = outcome;
        const past = steps.slice(0, index + 1);
        const more = await limiter.consume(await replayed(world, limiter, past), { cost: remaining + 1 });
        assert.equal(more.allowed, false, `step ${index}: ${remaining} + 1`);
        if (remaining === 0) continue;
        const all = await limiter.consume(await replayed(world, limiter, past), { cost: remaining });
        assert.equal(all.allowed, true, `step ${index}: ${remaining}`);
      }
    }),
    world.runs(100),
  );
});

it("a cost above the quota is always rejected and leaves no trace", async (world) => {
  const costs = fc.constantFrom(1, 2, 1000, Number.MAX_SAFE_INTEGER);
  await fc.assert(
    fc.asyncProperty(scriptsOf(forgivingPolicies, { backwards: true, longest: 10 }), costs, async ([policy, steps], over) => {
      const limiter = world.limiter(policy);
      const impossible = async (key: string) => {
        const before = await limiter.peek(key);
        const decision = await limiter.consume(key, { cost: Math.min(policy.quota + over, Number.MAX_SAFE_INTEGER) });
        assert.equal(decision.allowed, false);
        assert.equal(decision.retryAfterMs, Number.POSITIVE_INFINITY);
        assert.equal(decision.remaining, before.remaining);
        assert.equal(decision.delayMs, 0);
        assert.deepEqual(await limiter.peek(key), before);
      };
      await impossible("key");
      await playAll(world, limiter, "key", steps);
      await impossible("key");
    }),
    world.runs(100),
  );
});

it("numbers are whole and never negative, and remaining never exceeds the limit", async (world) => {
  await fc.assert(
    fc.asyncProperty(scriptsOf(policies, { refunds: true, settles: true, jumps: true, impossible: true }), async ([policy, steps]) => {
      const limiter = world.limiter(policy);
      for (const outcome of await playAll(world, limiter, "key", steps)) {
        if (typeof outcome === "number") assert.ok(outcome >= -policy.quota && outcome <= 4 * policy.quota, `changed by ${outcome}`);
        else checkNumbers(outcome);
      }
      checkNumbers(await limiter.peek("key"));
    }),
    world.runs(200),
  );
});

it("a leaky bucket releases requests in order, and no faster than it leaks", async (world) => {
  const queues = forgivingPolicies.filter((policy): policy is LeakyBucketPolicy => policy.algorithm === "leaky-bucket");
  await fc.assert(
    fc.asyncProperty(scriptsOf(queues, { backwards: true, longest: 40 }), async ([policy, steps]) => {
      const { leak, everyMs, maxDelayMs } = policy as LeakyBucketPolicy;
      const outcomes = (await playAll(world, world.limiter(policy), "key", steps)) as Decision[];
      const admitted = outcomes.filter(({ allowed }) => allowed);
      for (let i = 0; i < admitted.length; i++) {
        const first = admitted[i] as Decision;
        assert.ok(first.delayMs <= maxDelayMs);
        let ahead = 0n;
        for (const next of admitted.slice(i + 1)) {
          ahead += BigInt((admitted[admitted.indexOf(next) - 1] as Decision).cost);
          const apartMs = next.atMs + next.delayMs - first.atMs - first.delayMs;
          assert.ok(apartMs >= 0, "first in, first out");
          // Waits are rounded up to whole milliseconds, so two starts may be up to 1 ms closer.
          assert.ok(BigInt(apartMs + 1) * BigInt(leak) > ahead * BigInt(everyMs), `${ahead} units passed in ${apartMs} ms`);
        }
      }
    }),
    world.runs(200),
  );
});

it("makes later requests fit beside the real costs of earlier ones", async (world) => {
  const real = fc.infiniteStream(fc.double({ min: 0, max: 4, noNaN: true }));
  await fc.assert(
    fc.asyncProperty(scriptsOf(policies, { longest: 40 }), real, async ([policy, steps], factors) => {
      const limiter = world.limiter(policy);
      // Newest first.
      const used: { atMs: number; units: bigint }[] = [];
      for (const step of steps) {
        const [decision] = (await playAll(world, limiter, "key", [step])) as [Decision];
        if (!decision.allowed) continue;
        let units = BigInt(decision.cost);
        for (const earlier of used) {
          units += earlier.units;
          const stretchMs = decision.atMs - earlier.atMs;
          const most = mostIn(policy, earlier.atMs, stretchMs, { owing: true });
          // A window's debt ends with the window.
          if (policy.algorithm.includes("window") && most > BigInt(policy.quota)) break;
          assert.ok(units <= most, `${units} units within ${stretchMs} ms, and ${most} at most`);
        }
        const factor = factors.next().value as number;
        // Nobody owes a slot.
        const realCost = Math.round(decision.cost * (policy.algorithm === "concurrency" ? 0 : factor));
        await limiter.settle("key", decision, realCost);
        used.unshift({ atMs: decision.atMs, units: BigInt(realCost) });
      }
    }),
    world.runs(200),
  );
});
