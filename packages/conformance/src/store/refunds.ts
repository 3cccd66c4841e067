import * as assert from "node:assert/strict";
import { consumeAll, type Decision, fixedWindow } from "@floodgate/core";
import * as fc from "fast-check";
import { policies, variants } from "./algorithms.js";
import { playAll, scriptsOf } from "./scripts.js";
import { type Suite, startMs } from "./world.js";

/** A refund gives back what still counts of a charge, once. */
export function refundCases(suite: Suite): void {
  suite.it("a refund never exceeds the charge, and happens only once", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { jumps: true, impossible: true }), fc.nat(2), async ([policy, steps], pauses) => {
        const limiter = world.limiter(policy);
        const decisions = (await playAll(world, limiter, "key", steps)) as Decision[];
        world.nowMs += pauses * Math.ceil(policy.spanMs / 4);
        for (const decision of decisions) {
          const before = await limiter.peek("key");
          const units = await limiter.refund("key", decision);
          const after = await limiter.peek("key");
          assert.ok(units >= 0 && units <= (decision.allowed ? decision.cost : 0), `${units} of ${decision.cost}`);
          assert.ok(after.remaining >= before.remaining, "a refund takes no room");
          assert.ok(after.remaining - before.remaining <= Math.ceil(units), `refunding ${units} made more room than that`);
          assert.ok(after.resetAfterMs <= before.resetAfterMs);
          assert.equal(await limiter.refund("key", decision), 0, "a second time");
          assert.deepEqual(await limiter.peek("key"), after);
        }
      }),
      world.runs(150),
    );
  });

  suite.it("an immediate refund restores the key (a queue refunds nothing)", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { longest: 10 }), async ([policy, steps]) => {
        const limiter = world.limiter(policy);
        await playAll(world, limiter, "key", steps);
        const before = await limiter.peek("key");
        const decision = await limiter.consume("key");
        const taken = await limiter.peek("key");
        const units = await limiter.refund("key", decision);
        const after = await limiter.peek("key");
        if (!decision.allowed || policy.algorithm === "leaky-bucket") {
          assert.equal(units, 0);
          assert.deepEqual(after, taken);
        } else {
          assert.equal(units, 1);
          assert.deepEqual([after.remaining, after.allowed], [before.remaining, before.allowed]);
        }
      }),
      world.runs(150),
    );
  });

  suite.it("a refund of all that a window has leaves what counts of the window before", async (world) => {
    for (const { name, of } of variants) {
      const limiter = world.limiter(of(10, 10, "1m"));
      for (const pauseMs of [1, 30_000, 59_999, 60_000, 60_001, 90_000]) {
        const key = `key ${pauseMs}`;
        await limiter.consume(key, { cost: 6 });
        world.nowMs += pauseMs;
        const before = await limiter.peek(key);
        const units = await limiter.refund(key, await limiter.consume(key, { cost: 2 }));
        const after = await limiter.peek(key);
        assert.equal(after.remaining, before.remaining + units - 2, `${name}, ${pauseMs} ms later`);
      }
    }
  });

  suite.it("a refund after the state has expired gives nothing and creates no state", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { backwards: true }), fc.nat(100), async ([policy, steps], lateMs) => {
        const limiter = world.limiter(policy);
        const decisions = (await playAll(world, limiter, "key", steps)) as Decision[];
        world.nowMs += (await limiter.peek("key")).resetAfterMs + lateMs;
        const fresh = await limiter.peek("fresh");
        for (const decision of decisions) {
          assert.equal(await limiter.refund("key", decision), 0);
        }
        assert.deepEqual(await limiter.peek("key"), fresh);
      }),
      world.runs(100),
    );
  });

  suite.it("a charge from before the state expired is not refunded to the next state", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies), fc.nat(100), async ([policy, steps], lateMs) => {
        const limiter = world.limiter(policy);
        const decisions = (await playAll(world, limiter, "key", steps)) as Decision[];
        world.nowMs += (await limiter.peek("key")).resetAfterMs + lateMs;
        const charged = await limiter.consume("key", { cost: policy.quota });
        assert.equal(charged.allowed, true);
        const before = await limiter.peek("key");
        for (const decision of decisions) assert.equal(await limiter.refund("key", decision), 0);
        assert.deepEqual(await limiter.peek("key"), before);
      }),
      world.runs(100),
    );
  });

  suite.it("a charge that a clock jump made void is not refunded", async (world) => {
    await fc.assert(
      fc.asyncProperty(policies, fc.integer({ min: 2, max: 1000 }), async (policy, spans) => {
        const limiter = world.limiter(policy);
        world.nowMs = startMs + spans * policy.spanMs + policy.spanMs;
        const ahead = await limiter.consume("key");
        world.nowMs = startMs;
        await limiter.consume("key", { cost: policy.quota });
        const before = await limiter.peek("key");
        assert.equal(before.remaining, 0);
        assert.equal(await limiter.refund("key", ahead), 0);
        assert.deepEqual(await limiter.peek("key"), before);
      }),
      world.runs(100),
    );
  });

  suite.it("each part of an allowed consumeAll can be refunded", async (world) => {
    const wide = world.limiter(fixedWindow({ limit: 10, window: "1m" }));
    const narrow = world.limiter(fixedWindow({ limit: 3, window: "1m" }));
    const { all } = await consumeAll([
      { limiter: wide, key: "key", cost: 4 },
      { limiter: narrow, key: "key", cost: 2 },
    ]);
    assert.equal(await wide.refund("key", all[0] as Decision), 4);
    assert.equal(await narrow.refund("key", all[1] as Decision), 2);
    assert.deepEqual([(await wide.peek("key")).remaining, (await narrow.peek("key")).remaining], [10, 3]);
  });
}
