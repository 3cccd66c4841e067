import * as assert from "node:assert/strict";
import * as fc from "fast-check";
import { policies } from "../../../conformance/src/store/algorithms.js";
import { playAll, scriptsOf } from "../../../conformance/src/store/scripts.js";
import { startMs } from "../../../conformance/src/store/world.js";
import type { Decision, Policy } from "../../src/index.js";
import { algorithmOf } from "../../src/store.js";

const yearMs = 365 * 86_400_000;

import { it } from "./in-world.js";

/** The start of a window, or a time at which refills may have begun. */
function startOf(policy: Policy): number {
  if (policy.algorithm === "calendar-window") return algorithmOf(policy).edges?.(policy, startMs)[1] as number;
  const times = "windowMs" in policy ? policy.windowMs : "everyMs" in policy ? policy.everyMs : policy.holdMs;
  return Math.ceil(startMs / times) * times;
}

it("when the clock steps back within the span, usage is kept and waits include the step", async (world) => {
  await fc.assert(
    fc.asyncProperty(policies, fc.double({ min: 0, max: 1, noNaN: true }), async (policy, share) => {
      const limiter = world.limiter(policy);
      // At a window's start the state's own time equals the clock's.
      world.nowMs = startOf(policy);
      while ((await limiter.consume("key")).allowed) {}
      const before = await limiter.peek("key");
      assert.equal(before.allowed, false);
      const backMs = Math.floor(share * policy.spanMs);
      world.nowMs -= backMs;
      const after = await limiter.peek("key");
      const later = { retryAfterMs: before.retryAfterMs + backMs, resetAfterMs: before.resetAfterMs + backMs };
      assert.deepEqual({ ...after }, { ...before, ...later });
    }),
    world.runs(100),
  );
});

it("when the clock jumps ahead and back, a key is locked for at most two spans", async (world) => {
  const jumps = fc.oneof(fc.constant(yearMs), fc.nat(yearMs), fc.nat(10_000));
  await fc.assert(
    fc.asyncProperty(scriptsOf(policies, { longest: 8 }), jumps, async ([policy, steps], aheadMs) => {
      const limiter = world.limiter(policy);
      await playAll(world, limiter, "key", steps);
      const nowMs = world.nowMs;
      world.nowMs = nowMs + aheadMs;
      for (let i = 0; i <= policy.quota; i++) await limiter.consume("key");
      world.nowMs = nowMs;
      const { retryAfterMs } = await limiter.peek("key");
      // At the edge of its sub-window a count still weighs in full, so the sliding counter needs 1 ms more; a strict one, all of it.
      const edgeMs = policy.algorithm !== "sliding-window-counter" ? 0 : policy.strict ? policy.bucketMs : 1;
      assert.ok(retryAfterMs <= 2 * policy.spanMs + edgeMs, `locked for ${retryAfterMs} ms`);
      world.nowMs = nowMs + retryAfterMs;
      assert.equal((await limiter.consume("key")).allowed, true);
    }),
    world.runs(150),
  );
});

it("when the clock returns from a jump longer than the span, the key starts fresh", async (world) => {
  await fc.assert(
    fc.asyncProperty(policies, scriptsOf(policies, { longest: 8 }), fc.nat(3), async (policy, [, later], spans) => {
      const limiter = world.limiter(policy);
      world.nowMs = startMs + (spans + 3) * policy.spanMs + yearMs;
      await limiter.consume("key", { cost: policy.quota });
      world.nowMs = startMs;
      assert.deepEqual(await limiter.peek("key"), await limiter.peek("fresh"));
      await limiter.consume("key");
      await limiter.consume("fresh");
      const after = later.map((step) => ({ atMs: step.atMs, cost: "cost" in step ? step.cost : 1 }));
      const decisions = (await playAll(world, limiter, "key", after)) as Decision[];
      assert.deepEqual(decisions, await playAll(world, limiter, "fresh", after));
    }),
    world.runs(100),
  );
});

it("when the clock stands still, exactly the quota passes", async (world) => {
  await fc.assert(
    fc.asyncProperty(policies, async (policy) => {
      const limiter = world.limiter(policy);
      let passed = 0;
      for (let i = 0; i < policy.quota + 3; i++) if ((await limiter.consume("key")).allowed) passed++;
      assert.ok(passed >= 1 && passed <= policy.quota);
      if (policy.algorithm !== "leaky-bucket") assert.equal(passed, policy.quota);
    }),
    world.runs(50),
  );
});
