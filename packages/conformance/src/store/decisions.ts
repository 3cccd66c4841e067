import * as assert from "node:assert/strict";
import type { Decision } from "@floodgate/core";
import * as fc from "fast-check";
import { forgivingPolicies, policies } from "./algorithms.js";
import { checkNumbers } from "./large.js";
import { type Outcome, play, playAll, replayed, scriptsOf } from "./scripts.js";
import type { Suite } from "./world.js";

/** Each field of a decision means what the contract says. */
export function decisionCases(suite: Suite): void {
  suite.it("a rejected request changes nothing", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(forgivingPolicies, { backwards: true, impossible: true }), async ([policy, steps]) => {
        const limiter = world.limiter(policy);
        const allowed: Decision[] = [];
        const admitted = [];
        for (const step of steps) {
          world.nowMs = step.atMs;
          const before = await limiter.peek("key");
          const decision = (await play(world, limiter, "key", step, [])) as Decision;
          if (decision.allowed) {
            allowed.push(decision);
            admitted.push(step);
          } else {
            assert.deepEqual(await limiter.peek("key"), before);
          }
        }
        // Nor later: without the rejected requests, all others are decided the same.
        assert.deepEqual(await playAll(world, limiter, "other", admitted), allowed);
      }),
      world.runs(150),
    );
  });

  suite.it("a request passes after retryAfterMs and not one millisecond earlier", async (world) => {
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

  suite.it("remaining is the largest cost that passes", async (world) => {
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

  suite.it("after resetAfterMs a key behaves like one that was never used", async (world) => {
    await fc.assert(
      fc.asyncProperty(
        scriptsOf(policies, { refunds: true, settles: true, backwards: true }),
        scriptsOf(policies),
        async ([policy, steps], [, later]) => {
          const limiter = world.limiter(policy);
          await playAll(world, limiter, "used", steps);
          const { resetAfterMs } = await limiter.peek("used");
          const resetMs = world.nowMs + resetAfterMs;
          world.nowMs = resetMs;
          assert.deepEqual(await limiter.peek("used"), await limiter.peek("fresh"));
          const shifted = later.map((step) => ({
            cost: "cost" in step ? step.cost : 1,
            atMs: resetMs + step.atMs - (later[0]?.atMs ?? 0),
          }));
          const used = await playAll(world, limiter, "used", shifted);
          assert.deepEqual(used, await playAll(world, limiter, "fresh", shifted));
        },
      ),
      world.runs(150),
    );
  });

  suite.it("one millisecond before resetAfterMs a key still remembers its usage", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { settles: true, backwards: true }), async ([policy, steps]) => {
        const limiter = world.limiter(policy);
        await playAll(world, limiter, "used", steps);
        const { resetAfterMs } = await limiter.peek("used");
        if (resetAfterMs === 0) return;
        world.nowMs += resetAfterMs - 1;
        assert.equal((await limiter.peek("used")).resetAfterMs, 1);
        assert.equal((await limiter.peek("fresh")).resetAfterMs, 0);
      }),
      world.runs(100),
    );
  });

  suite.it("peek takes nothing, leaves no trace, and answers as a request of cost 1 would be", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { refunds: true, settles: true, backwards: true }), async ([policy, steps]) => {
        const limiter = world.limiter(policy);
        const watched: Outcome[] = [];
        for (const step of steps) {
          world.nowMs = step.atMs;
          const look = await limiter.peek("watched");
          assert.deepEqual(await limiter.peek("watched"), look);
          const outcome = await play(world, limiter, "watched", step, watched);
          watched.push(outcome);
          if (typeof outcome !== "number" && outcome.cost === 1) {
            assert.deepEqual([look.allowed, look.delayMs, look.atMs], [outcome.allowed, outcome.delayMs, outcome.atMs]);
          }
          await limiter.peek("watched");
        }
        assert.deepEqual(await playAll(world, limiter, "unwatched", steps), watched);
      }),
      world.runs(100),
    );
  });

  suite.it("a cost above the quota is always rejected and leaves no trace", async (world) => {
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

  suite.it("numbers are whole and never negative, and remaining never exceeds the limit", async (world) => {
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

  suite.it("reset clears one key and leaves all others", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { backwards: true, longest: 10 }), async ([policy, steps]) => {
        const limiter = world.limiter(policy);
        const other = world.limiter(policy);
        await playAll(world, limiter, "reset", steps);
        await playAll(world, limiter, "kept", steps);
        await playAll(world, other, "reset", steps);
        const kept = await limiter.peek("kept");
        const others = await other.peek("reset");
        await limiter.reset("reset");
        assert.deepEqual(await limiter.peek("reset"), await limiter.peek("fresh"));
        assert.deepEqual(await limiter.peek("kept"), kept);
        assert.deepEqual(await other.peek("reset"), others);
      }),
      world.runs(50),
    );
  });
}
