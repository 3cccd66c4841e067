import * as assert from "node:assert/strict";
import { consumeAll, type Decision, fixedWindow, type Policy, tokenBucket } from "@floodgate/core";
import { asCharge, createLimit, type Limit, nothingReserved } from "@floodgate/core/store";
import * as fc from "fast-check";
import { isWindow, mostIn, policies, variants } from "./algorithms.js";
import { verdictOf } from "./bounds.js";
import { checkNumbers, largePolicies } from "./large.js";
import { Model } from "./model.js";
import { planOf, plans } from "./plans.js";
import { playAll, replayed, type Step, scripts, scriptsOf } from "./scripts.js";
import { type Suite, startMs, type World } from "./world.js";

/** `settle` replaces the reserved cost by the real one: it refunds the difference, or charges it. */
export function settlingCases(suite: Suite): void {
  suite.it("matches the algorithm's definition when plans change and the clock jumps", async (world) => {
    await fc.assert(
      fc.asyncProperty(livesUnderPlans, ([limits, acts]) => agreesUnderPlans(world, limits, acts)),
      world.runs(400),
    );
  });

  for (const kind of variants) {
    suite.it(`${kind.name}: changes the shared count by the same units, whichever plan charged since`, async (world) => {
      const some = fc.oneof(plans, fc.tuple(fc.integer({ min: 100, max: 1000 }), fc.integer({ min: 1, max: 20 })));
      const share = fc.double({ min: 0, max: 1, noNaN: true });
      const realCost = fc.oneof(fc.constant(0), fc.nat(60), fc.nat(2000));
      await fc.assert(
        fc.asyncProperty(some, some, share, share, realCost, fc.boolean(), async (one, other, first, second, cost, later) => {
          const [settling, charging, wide] = [one, other, [wideQuota, 1] as const].map(([quota, pace]) =>
            createLimit("plans", planOf(kind, [quota, pace])),
          ) as [Limit, Limit, Limit];
          const key = world.fresh();
          const left = async (limit: Limit): Promise<number> => (await world.store.peek(limit, key)).remaining;
          const decision = await world.store.consume(settling, key, Math.ceil(first * (one[0] - 1)) + 1);
          // By then the charge has expired; a bucket still charges a higher real cost.
          if (later) world.nowMs += 86_400_000;
          const room = await left(charging);
          if (room === 0) return;
          await world.store.consume(charging, key, Math.ceil(second * (room - 1)) + 1);

          const before = await left(wide);
          const units = await world.store.settle(settling, key, asCharge(decision), cost);
          if (cost > decision.cost)
            assert.equal(units, (later && isWindow(settling.policy)) || isSlot(settling.policy) ? 0 : cost - decision.cost);
          else assert.ok(units <= 0 && units >= cost - decision.cost, `settled by ${units}, at most ${cost - decision.cost}`);
          const after = await left(wide);
          assert.equal(after, Math.max(0, before - units));
          if (after > 0) assert.equal(await left(charging), kind.left(other[0], wideQuota - after, wideQuota));
        }),
        world.runs(60),
      );
    });
  }

  suite.it("changes nothing for the reserved cost, and equals a refund for a cost of 0", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { refunds: true, settles: true, jumps: true }), fc.nat(24), async ([policy, steps], which) => {
        const limiter = world.limiter(policy);
        const [same, refunded, settled] = ["same", "refunded", "settled"] as const;
        const charged = async (key: string) => (await playAll(world, limiter, key, steps))[which % steps.length] as Decision;
        const [ofSame, ofRefunded, ofSettled] = [await charged(same), await charged(refunded), await charged(settled)];
        if (typeof ofSame === "number" || isSlot(policy)) return;
        const before = await limiter.peek(same);
        assert.equal(await limiter.settle(same, ofSame, ofSame.cost), 0);
        assert.deepEqual(await limiter.peek(same), before);
        const back = await limiter.refund(refunded, ofRefunded);
        assert.equal(back + (await limiter.settle(settled, ofSettled, 0)), 0);
        assert.deepEqual(await limiter.peek(settled), await limiter.peek(refunded));
      }),
      world.runs(100),
    );
  });

  suite.it("settles each part of an allowed consumeAll by itself", async (world) => {
    const requests = world.limiter(fixedWindow({ limit: 10, window: "1m" }));
    const tokens = world.limiter(tokenBucket({ capacity: 1000, refill: 1000, every: "1m" }));
    const { all } = await consumeAll([
      { limiter: requests, key: "key" },
      { limiter: tokens, key: "key", cost: 500 },
    ]);
    assert.equal(await tokens.settle("key", all[1] as Decision, 1200), 700);
    assert.deepEqual([(await requests.peek("key")).remaining, (await tokens.peek("key")).remaining], [9, 0]);
  });

  for (const kind of variants.filter(({ name }) => name !== "concurrency")) {
    suite.it(`${kind.name}: records usage that nothing was reserved for, into debt, as one charge of its own`, async (world) => {
      const limiter = world.limiter(kind.of(10, 1, "1h"));
      assert.equal(await limiter.charge("fresh", 4), 4);
      assert.equal((await limiter.peek("fresh")).remaining, 6);
      const earlier = await limiter.consume("fresh", { cost: 2 });
      assert.equal(await limiter.charge("fresh", 10_000), 10_000);
      const { allowed, remaining } = await limiter.peek("fresh");
      assert.deepEqual([allowed, remaining], [false, 0]);
      // The charge of the decision is apart from the usage.
      if (kind.name !== "leaky bucket") assert.equal(await limiter.refund("fresh", earlier), 2);
      await limiter.block("blocked", "1h");
      assert.equal(await limiter.charge("blocked", 4), 4);
      await limiter.unblock("blocked");
      assert.equal((await limiter.peek("blocked")).remaining, 6);
    });
  }

  suite.it("takes any cost: all numbers stay whole, below 2^53 and correct", async (world) => {
    const some = fc.oneof(policies, fc.constantFrom(...largePolicies.map(([, policy]) => policy)));
    const huge = fc.constantFrom(2 ** 53 - 1, 2 ** 53 - 2, 2 ** 52, 2 ** 48, 2 ** 40);
    const costs = fc.array(huge, { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(
        some.chain((policy) => fc.tuple(fc.constant(policy), scripts(policy, { longest: 6 }))),
        costs,
        async ([policy, steps], realCosts) => {
          const limiter = world.limiter(policy);
          const nowMs = (steps.at(-1) as Step).atMs;
          // Settle the last requests, one for each cost.
          const first = Math.max(0, steps.length - realCosts.length);
          const owing = steps.slice(first).map((_, i): Step => ({ atMs: nowMs, settle: first + i, realCost: realCosts[i] as number }));
          const past: Step[] = [...steps, ...owing, { atMs: nowMs, cost: policy.quota }];
          const outcomes = await playAll(world, limiter, "key", past);
          let owed = 0n;
          for (const outcome of outcomes) {
            if (typeof outcome === "number") owed += BigInt(outcome);
            else checkNumbers(outcome);
          }
          const { retryAfterMs, resetAfterMs } = outcomes.at(-1) as Decision;
          // Every unit charged is counted: in a window exactly, in a bucket until it is paid off.
          const most = isWindow(policy)
            ? BigInt(Number.MAX_SAFE_INTEGER) / BigInt("bucketMs" in policy ? policy.bucketMs : 1)
            : mostIn(policy, nowMs, resetAfterMs, { owing: true });
          assert.ok(owed <= most, `${owed} units charged in addition, and ${most} counted`);
          for (const [atMs, allowed] of [
            [nowMs + retryAfterMs, true],
            [nowMs + retryAfterMs - 1, false],
          ] as const) {
            if (retryAfterMs === 0) continue;
            const key = await replayed(world, limiter, past);
            world.nowMs = atMs;
            assert.equal((await limiter.consume(key, { cost: policy.quota })).allowed, allowed, `${atMs - nowMs} of ${retryAfterMs} ms`);
          }
        },
      ),
      world.runs(200),
    );
  });

  suite.it("leaves a debt: a window's ends with the window, a bucket's when it is paid off", async (world) => {
    const [window, bucket] = [fixedWindow({ limit: 10, window: "1m" }), tokenBucket({ capacity: 10, refill: 10, every: "1m" })];
    const owing = async (policy: typeof window | typeof bucket): Promise<number> => {
      const limiter = world.limiter(policy);
      assert.equal(await limiter.settle("key", await limiter.consume("key"), 40), 39);
      return (await limiter.peek("key")).retryAfterMs;
    };
    assert.deepEqual([await owing(window), await owing(bucket)], [60_000, 186_000]);
  });

  suite.it("charges a higher cost to a bucket at any time, to a window only while the charge counts", async (world) => {
    const [window, bucket] = [fixedWindow({ limit: 10, window: "1m" }), tokenBucket({ capacity: 10, refill: 10, every: "1m" })];
    const [ofWindow, ofBucket] = [world.limiter(window), world.limiter(bucket)];
    const [inWindow, inBucket] = [await ofWindow.consume("key"), await ofBucket.consume("key")];
    world.nowMs = startMs + 600_000;
    assert.deepEqual([await ofWindow.settle("key", inWindow, 5), await ofBucket.settle("key", inBucket, 5)], [0, 4]);
    assert.deepEqual([(await ofWindow.peek("key")).remaining, (await ofBucket.peek("key")).remaining], [10, 6]);
  });

  suite.it("gives back nothing of a charge whose bucket has filled up, after recorded usage has begun another", async (world) => {
    for (const style of ["interval", "smooth"] as const) {
      const [fast, slow] = [17, 1].map((refill) => createLimit("plans", tokenBucket({ capacity: 23, refill, every: "1s", style }))) as [
        Limit,
        Limit,
      ];
      const key = world.fresh();
      await world.store.settle(fast, key, nothingReserved, 1);
      const charged = await world.store.consume(slow, key, 2);
      world.nowMs += 1000;
      await world.store.settle(slow, key, nothingReserved, 1);
      assert.equal(await world.store.settle(slow, key, asCharge(charged), 0), 0, style);
      assert.equal((await world.store.peek(slow, key)).remaining, 22, style);
    }
  });

  suite.it(
    "gives back nothing of a charge whose bucket has filled up, after the higher cost of another has begun another",
    async (world) => {
      for (const style of ["interval", "smooth"] as const) {
        const fast = createLimit("plans", tokenBucket({ capacity: 21, refill: 12, every: "1s", style }));
        const slow = createLimit("plans", tokenBucket({ capacity: 14, refill: 3, every: "1s", style }));
        const key = world.fresh();
        const [one, four] = [await world.store.consume(fast, key, 1), await world.store.consume(fast, key, 4)];
        world.nowMs += 1000;
        assert.equal(await world.store.settle(slow, key, asCharge(one), 2), 1, style);
        assert.equal(await world.store.settle(slow, key, asCharge(four), 0), 0, style);
        assert.equal((await world.store.peek(slow, key)).remaining, 13, style);
      }
    },
  );
}

/** A plan large enough to see everything that the others have charged. */
const wideQuota = 10_000;

/** Nobody owes a slot. */
function isSlot({ algorithm }: Policy): boolean {
  return algorithm === "concurrency";
}

/** A request or settlement under one of the key's plans, `byMs` after the previous one. */
type Act = { readonly byMs: number; readonly plan: number } & (
  | { readonly cost: number }
  | { readonly settle: number; readonly realCost: number }
  | { readonly charge: number }
);

const livesUnderPlans: fc.Arbitrary<[Limit[], Act[]]> = fc
  .tuple(fc.constantFrom(...variants), fc.array(plans, { minLength: 3, maxLength: 3 }))
  .chain(([kind, numbers]) => {
    const limits = numbers.map((plan) => createLimit("plans", planOf(kind, plan)));
    const byMs = fc.oneof(
      { weight: 6, arbitrary: fc.nat(100) },
      { weight: 3, arbitrary: fc.nat(3000) },
      { weight: 2, arbitrary: fc.integer({ min: -1000, max: 0 }) },
      { weight: 1, arbitrary: fc.constantFrom(-86_400_000, 86_400_000) },
    );
    const act: fc.Arbitrary<Act> = fc.oneof(
      { weight: 3, arbitrary: fc.record({ byMs, plan: fc.nat(2), cost: fc.integer({ min: 1, max: 15 }) }) },
      { weight: 2, arbitrary: fc.record({ byMs, plan: fc.nat(2), settle: fc.nat(3), realCost: fc.oneof(fc.nat(15), fc.nat(100)) }) },
      { weight: 1, arbitrary: fc.record({ byMs, plan: fc.nat(2), charge: fc.integer({ min: 1, max: 60 }) }) },
    );
    return fc.tuple(fc.constant(limits), fc.array(act, { minLength: 2, maxLength: 25, size: "max" }));
  });

async function agreesUnderPlans(world: World, limits: readonly Limit[], acts: readonly Act[]): Promise<void> {
  const key = world.fresh();
  const model = new Model((limits[0] as Limit).policy);
  const charged: [Decision, number][] = [];
  world.nowMs = startMs;
  for (const [index, act] of acts.entries()) {
    world.nowMs += act.byMs;
    const limit = limits[act.plan] as Limit;
    model.change(limit.policy);
    if ("cost" in act) {
      const decision = await world.store.consume(limit, key, act.cost);
      assert.deepEqual(verdictOf(decision), model.consume(world.nowMs, act.cost), `act ${index}`);
      if (decision.allowed) charged.push([decision, model.life]);
    } else if ("charge" in act) {
      const units = await world.store.settle(limit, key, nothingReserved, act.charge);
      assert.equal(units, model.charge(world.nowMs, act.charge), `act ${index}`);
    } else {
      const [charge] = charged.splice(-1 - act.settle, 1);
      if (charge === undefined) continue;
      const [decision, life] = charge;
      const units = await world.store.settle(limit, key, asCharge(decision), act.realCost);
      assert.equal(units, model.settle(world.nowMs, decision, act.realCost, life), `act ${index}`);
    }
    for (const other of limits) {
      model.change(other.policy);
      assert.deepEqual(verdictOf(await world.store.peek(other, key)), model.peek(world.nowMs), `peek after act ${index}`);
    }
    const other = limits[index % limits.length] as Limit;
    model.change(other.policy);
    assert.deepEqual((await world.store.keyState(other, key)).state, model.keyState(world.nowMs), `inspection after act ${index}`);
  }
}
