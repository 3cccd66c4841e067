import * as assert from "node:assert/strict";
import { fixedWindow, gcra, slidingWindowCounter, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { asCharge, createLimit, type Limit } from "@floodgate/core/store";
import { type Suite, startMs } from "./world.js";

const perMinute = fixedWindow({ limit: 10, window: "1m" });

/** A charge is bound to the state that was charged. `accounts.ts` has what binds it to its decision, key and limiter. */
export function chargeCases(suite: Suite): void {
  suite.it("after a reset, earlier charges are not refunded, and windows charge no debt for them", async (world) => {
    for (const policy of [perMinute, tokenBucket(bucket)]) {
      const limiter = world.limiter(policy);
      const before = [await limiter.consume("key", { cost: 5 }), await limiter.consume("key", { cost: 5 })] as const;
      await limiter.reset("key");
      assert.equal(await limiter.refund("key", before[0]), 0, "before the next charge");
      await limiter.consume("key", { cost: 10 });
      assert.equal(await limiter.settle("key", before[1], 0), 0, "after it, within a millisecond");
      assert.equal((await limiter.peek("key")).remaining, 0);
    }
    const limiter = world.limiter(perMinute);
    const decision = await limiter.consume("key");
    await limiter.reset("key");
    await limiter.consume("key");
    assert.equal(await limiter.settle("key", decision, 5), 0);
  });

  for (const policy of [...windows, tokenBucket(bucket), gcra({ limit: 10, window: "1m" })]) {
    suite.it(`up to the largest debt, earlier charges are still refunded (${policy.stateKind})`, async (world) => {
      const limiter = world.limiter(policy);
      const before = await limiter.consume("key", { cost: 5 });
      await limiter.charge("key", Number.MAX_SAFE_INTEGER);
      assert.equal(await limiter.refund("key", before), 5);
    });
  }

  suite.it("charges from before a reset are not refunded after a later state was refunded in full", async (world) => {
    const limiter = world.limiter(perMinute);
    const [first, second] = [await limiter.consume("key", { cost: 5 }), await limiter.consume("key", { cost: 1 })];
    await limiter.reset("key");
    const third = await limiter.consume("key", { cost: 3 });
    assert.equal(await limiter.refund("key", third), 3);
    await limiter.consume("key", { cost: 9 });
    assert.deepEqual([await limiter.refund("key", first), await limiter.refund("key", second)], [0, 0]);
    assert.equal((await limiter.peek("key")).remaining, 1);
  });

  for (const policy of [...windows, tokenBucket(bucket), tokenBucket({ ...bucket, style: "interval" })]) {
    suite.it(
      `after the clock stepped back by more than the span and returned, earlier charges are not refunded (${policy.stateKind})`,
      async (world) => {
        const limiter = world.limiter(policy);
        const before = await limiter.consume("key", { cost: 10 });
        world.nowMs = startMs - 3 * policy.spanMs;
        await limiter.consume("key", { cost: 1 });
        world.nowMs = startMs;
        assert.equal((await limiter.consume("key", { cost: 9 })).remaining, 1);
        assert.equal(await limiter.refund("key", before), 0);
        assert.equal((await limiter.peek("key")).remaining, 1);
      },
    );
  }

  for (const style of ["smooth", "interval"] as const) {
    suite.it(`a charge of a slow plan is not refunded after a faster plan's refill has ended the state (${style})`, async (world) => {
      const [slow, fast] = [1, 3600].map((refill) => createLimit("plans", tokenBucket({ capacity: 10, refill, every: "1h", style }))) as [
        Limit,
        Limit,
      ];
      const before = await world.store.consume(slow, "key", 9);
      await world.store.consume(fast, "key", 1);
      world.nowMs = startMs + 3_600_001;
      assert.equal((await world.store.consume(slow, "key", 10)).allowed, true);
      assert.ok(Math.abs(await world.store.settle(slow, "key", asCharge(before), 0)) === 0);
      assert.equal((await world.store.peek(slow, "key")).remaining, 0);
    });
  }

  suite.it("after expiry, a bucket refunds nothing but still charges a higher real cost", async (world) => {
    const limiter = world.limiter(tokenBucket(bucket));
    const [first, second] = [await limiter.consume("key", { cost: 5 }), await limiter.consume("key", { cost: 1 })];
    world.nowMs = startMs + 600_000;
    assert.deepEqual([await limiter.refund("key", first), await limiter.settle("key", second, 4)], [0, 3]);
    assert.equal((await limiter.peek("key")).remaining, 7);
  });
}

const windows = [
  perMinute,
  slidingWindowLog({ limit: 10, window: "1m" }),
  slidingWindowCounter({ limit: 10, window: "1m" }),
  slidingWindowCounter({ limit: 10, window: "1m", buckets: 4 }),
];
const bucket = { capacity: 10, refill: 10, every: "1m" } as const;
