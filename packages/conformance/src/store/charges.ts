import * as assert from "node:assert/strict";
import {
  consumeAll,
  createLimiter,
  type Decision,
  fixedWindow,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "@floodgate/core";
import { asCharge, createLimit, type Limit } from "@floodgate/core/store";
import { patient, type Suite, startMs } from "./world.js";

const perMinute = fixedWindow({ limit: 10, window: "1m" });

/** A charge is bound to its decision, key, limiter and store, and to the state that was charged. */
export function chargeCases(suite: Suite): void {
  suite.it("refunding a copy of a decision is an error; the decision itself can still be refunded", async (world) => {
    const limiter = world.limiter(perMinute);
    const decision = await limiter.consume("key", { cost: 4 });
    for (const copy of [{ ...decision }, JSON.parse(JSON.stringify(decision)), structuredClone({ ...decision })]) {
      await isForeign(() => limiter.refund("key", copy));
      await isForeign(() => limiter.settle("key", copy, 5));
    }
    assert.equal((await limiter.peek("key")).remaining, 6);
    assert.equal(await limiter.refund("key", decision), 4);
    await isForeign(() => limiter.refund("key", { ...decision }));
    assert.equal((await limiter.peek("key")).remaining, 10);
  });

  suite.it("refunding a copy of a decision that charged nothing is an error, whatever its fields say", async (world) => {
    const limiter = world.limiter(perMinute);
    const narrow = world.limiter(fixedWindow({ limit: 1, window: "1m" }));
    await limiter.consume("key", { cost: 8 });
    await narrow.consume("key");
    const rejected = await limiter.consume("key", { cost: 5 });
    const checks = [limiter, narrow].map((one) => ({ limiter: one, key: "key" }));
    const part = (await consumeAll(checks)).all[0] as Decision;
    for (const forged of [{ ...(await limiter.peek("key")) }, { ...part }, { ...rejected, allowed: true, cost: 5 }]) {
      await isForeign(() => limiter.refund("key", forged));
    }
    assert.equal((await limiter.peek("key")).remaining, 2);
  });

  suite.it("refunding a decision under another key, limiter or store is an error", async (world) => {
    const limiter = world.limiter(perMinute);
    const decision = await limiter.consume("x", { cost: 4 });
    await limiter.consume("y", { cost: 4 });
    await isForeign(() => limiter.refund("y", decision));
    const other = world.limiter(perMinute);
    await other.consume("x", { cost: 4 });
    await isForeign(() => other.refund("x", decision));
    // The counts are the same, but the limiter cannot know that.
    const elsewhere = createLimiter({ name: limiter.name, policy: perMinute, store: patient(world.store) });
    await elsewhere.consume("x", { cost: 4 });
    await isForeign(() => elsewhere.settle("x", decision, 0));
    assert.equal(await limiter.refund("x", decision), 4);
  });

  suite.it("editing a decision does not change what is refunded", async (world) => {
    const limiter = world.limiter(perMinute);
    await limiter.consume("key", { cost: 5 });
    const decision = await limiter.consume("key", { cost: 2 });
    Object.assign(decision, { cost: 10, atMs: decision.atMs + 60_000, name: "other", policy: tokenBucket(bucket), allowed: false });
    assert.equal(await limiter.refund("key", decision), 2);
    const rejected = await limiter.consume("key", { cost: 9 });
    Object.assign(rejected, { allowed: true, degraded: true });
    assert.equal(await limiter.refund("key", rejected), 0);
    assert.equal((await limiter.peek("key")).remaining, 5);
  });

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

  suite.it("a limiter that replaces another of the same name and kind can refund its charges", async (world) => {
    const limiter = world.limiter(perMinute, "reloaded");
    const decision = await limiter.consume("key", { cost: 4 });
    const reloaded = world.limiter(fixedWindow({ limit: 10, window: "1m" }), "reloaded");
    assert.equal(await reloaded.refund("key", decision), 4);
    assert.equal(await limiter.refund("key", decision), 0);
    assert.equal((await limiter.peek("key")).remaining, 10);
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

/** Asserts that the call fails with FLOODGATE_FOREIGN_CHARGE. */
async function isForeign(act: () => unknown): Promise<void> {
  await assert.rejects(async () => await act(), { code: "FLOODGATE_FOREIGN_CHARGE" });
}
