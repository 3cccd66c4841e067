import * as assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { type Decision, fixedWindow } from "@floodgate/core";
import * as fc from "fast-check";
import { forgivingPolicies, policies } from "./algorithms.js";
import { type Outcome, play, playAll, scriptsOf } from "./scripts.js";
import type { Suite } from "./world.js";

/** Each field of a decision means what the contract says. */
export function decisionCases(suite: Suite): void {
  suite.it("each caller gets its answer in its own async context, also if several wait at once", async (world) => {
    const limiter = world.limiter(fixedWindow({ limit: 3, window: "1m" }));
    const context = new AsyncLocalStorage<number>();
    const seen: (number | undefined)[] = Array(6).fill(undefined);
    const callers = Array.from({ length: 6 }, (_, i) => i);
    const ask = (i: number): unknown => {
      const note = (): unknown => seen.splice(i, 1, context.getStore());
      const answer: Decision | PromiseLike<Decision> = limiter.consume("key");
      // Not by await, which keeps the context of any promise: adapters go on with `then`.
      return "then" in answer ? answer.then(note) : note();
    };
    await Promise.all(callers.map((i) => context.run(i, ask, i)));
    assert.deepEqual(seen, callers);
  });

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
        const outcomes: Outcome[] = [];
        for (const step of steps) {
          world.nowMs = step.atMs;
          const look = await limiter.peek("peeked");
          assert.deepEqual(await limiter.peek("peeked"), look);
          const outcome = await play(world, limiter, "peeked", step, outcomes);
          outcomes.push(outcome);
          if (typeof outcome !== "number" && outcome.cost === 1) {
            assert.deepEqual([look.allowed, look.delayMs, look.atMs], [outcome.allowed, outcome.delayMs, outcome.atMs]);
          }
          await limiter.peek("peeked");
        }
        assert.deepEqual(await playAll(world, limiter, "never peeked", steps), outcomes);
      }),
      world.runs(100),
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
