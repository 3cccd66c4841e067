import * as assert from "node:assert/strict";
import { type Decision, fixedWindow, type Policy, tokenBucket } from "@floodgate/core";
import { algorithmOf, asCharge, createLimit, heldPolicy, nothingReserved } from "@floodgate/core/store";
import * as fc from "fast-check";
import { forgivingPolicies } from "./algorithms.js";
import { Model } from "./model.js";
import type { Suite, World } from "./world.js";

type Act = { readonly byMs: number } & (
  | { readonly cost: number; readonly holdMs?: number | undefined }
  | { readonly settle: number; readonly real: number }
  | { readonly charge: number }
);

/** Policies whose units can be held. */
const holdable = forgivingPolicies.filter(({ algorithm }) => algorithm !== "leaky-bucket" && algorithm !== "concurrency");

const lives: fc.Arbitrary<[Policy, number, Act[]]> = holdable.chain((policy) => {
  const longestMs = fc.integer({ min: 1, max: 3 * policy.spanMs });
  return longestMs.chain((holdMs) => {
    const byMs = fc.oneof(fc.constantFrom(0, 0, 1, holdMs), fc.nat(holdMs), fc.nat(policy.spanMs));
    const cost = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: policy.quota }));
    const acts = fc.oneof(
      { weight: 4, arbitrary: fc.record({ byMs, cost, holdMs: fc.option(fc.integer({ min: 0, max: holdMs }), { nil: undefined }) }) },
      { weight: 3, arbitrary: fc.record({ byMs, settle: fc.nat(4), real: fc.oneof(fc.constant(0), fc.nat(2 * policy.quota)) }) },
      { weight: 1, arbitrary: fc.record({ byMs, charge: fc.integer({ min: 1, max: policy.quota }) }) },
    );
    return fc.tuple(fc.constant(policy), fc.constant(holdMs), fc.array(acts, { minLength: 1, maxLength: 25, size: "max" }));
  });
});

/** Units that are held: set aside until the real cost is known, or until they come back by themselves. */
export function holdCases(suite: Suite): void {
  suite.it("what is used and held and asked for never exceeds the limit, and each wait is exact", async (world) => {
    await fc.assert(
      fc.asyncProperty(lives, (life) => agrees(world, ...life)),
      world.runs(200),
    );
  });

  suite.it("a hold that nobody settles costs nothing, and a late settlement is a plain charge", async (world) => {
    const policy = heldPolicy("test", tokenBucket({ capacity: 100, refill: 1, every: "365d" }), 60_000);
    const limit = createLimit(world.fresh("limit"), policy);
    const held = await world.store.consume(limit, "key", 80);
    assert.equal(held.heldUntilMs, world.nowMs + 60_000);
    assert.deepEqual([held.remaining, (await world.store.consume(limit, "key", 21)).retryAfterMs], [20, 60_000]);
    world.nowMs += 60_000;
    assert.equal((await world.store.peek(limit, "key")).remaining, 100);
    assert.equal(await world.store.settle(limit, "key", asCharge(held), 130), 130);
    assert.equal((await world.store.keyState(limit, "key")).state.kind, "bucket");
    assert.equal((await world.store.peek(limit, "key")).remaining, 0);
  });

  suite.it("a hold never lasts past the end of a fixed window", async (world) => {
    const limit = createLimit(world.fresh("limit"), heldPolicy("test", fixedWindow({ limit: 10, window: "1m" }), 60_000));
    world.nowMs += 50_000;
    const held = await world.store.consume(limit, "key", 10);
    assert.equal(held.heldUntilMs, world.nowMs + 10_000);
    assert.equal((await world.store.peek(limit, "key")).retryAfterMs, 10_000);
    world.nowMs += 10_000;
    assert.equal((await world.store.consume(limit, "key", 10)).allowed, true);
  });

  suite.it("a reset forgets what is held, and a receipt settles a hold in another process once", async (world) => {
    const limiter = world.limiter(heldPolicy("test", fixedWindow({ limit: 10, window: "1h" }), 60_000), undefined, "s".repeat(32));
    const first = await limiter.consume("key", { cost: 8 });
    await limiter.reset("key");
    assert.equal((await limiter.peek("key")).remaining, 10);
    assert.equal(await limiter.refund("key", first), 0);
    const receipt = limiter.receipt(await limiter.consume("key", { cost: 8 }));
    assert.deepEqual([await limiter.settle("key", receipt, 3), await limiter.settle("key", receipt, 3)], [-5, 0]);
    assert.equal((await limiter.peek("key")).remaining, 7);
  });
}

interface Held {
  readonly decision: Decision;
  readonly untilMs: number;
}

async function agrees(world: World, policy: Policy, holdMs: number, acts: readonly Act[]): Promise<void> {
  const [store, key, model] = [world.store, world.fresh(), new Model(policy)];
  const limit = createLimit("held", heldPolicy("test", policy, holdMs));
  const open: Held[] = [];
  const heldAt = (): number => open.reduce((sum, { decision, untilMs }) => sum + (untilMs > world.nowMs ? decision.cost : 0), 0);
  const left = (): number => Math.max(0, model.peek(world.nowMs).remaining - heldAt());
  for (const [index, act] of acts.entries()) {
    world.nowMs += act.byMs;
    if ("cost" in act) {
      const forMs = act.holdMs ?? holdMs;
      const fits = act.cost <= left();
      const decision = await store.consume({ ...limit, holdMs: forMs }, key, act.cost);
      assert.equal(decision.allowed, fits, `act ${index}`);
      if (!fits) continue;
      const endMs = algorithmOf(policy).windowEndMs?.(policy, world.nowMs) ?? Number.POSITIVE_INFINITY;
      if (forMs > 0) open.push({ decision, untilMs: Math.min(world.nowMs + forMs, endMs) });
      else model.consume(world.nowMs, act.cost);
      assert.equal(decision.heldUntilMs, forMs > 0 ? open.at(-1)?.untilMs : undefined);
    } else if ("charge" in act) {
      await store.settle(limit, key, nothingReserved, act.charge);
      model.charge(world.nowMs, act.charge);
    } else {
      const [held] = open.splice(-1 - act.settle, 1);
      if (held === undefined) continue;
      const gone = held.untilMs > world.nowMs ? held.decision.cost : 0;
      const charged = act.real === 0 ? 0 : model.charge(world.nowMs, act.real);
      assert.equal(await store.settle(limit, key, asCharge(held.decision), act.real), charged - gone, `act ${index}`);
    }
    const look = await store.peek(limit, key);
    assert.equal(look.remaining, left(), `what remains after act ${index}`);
    const { state } = await store.keyState(limit, key);
    assert.equal(state.kind === "held" ? state.total : 0, heldAt());
    const nowMs = world.nowMs;
    for (const [atMs, fits] of [
      [nowMs + look.retryAfterMs - 1, false],
      [nowMs + look.retryAfterMs, true],
    ] as const) {
      if (look.retryAfterMs === 0) continue;
      world.nowMs = atMs;
      assert.equal((await store.peek(limit, key)).allowed, fits, `${atMs - nowMs} of ${look.retryAfterMs} ms after act ${index}`);
    }
    world.nowMs = nowMs;
  }
}
