import * as assert from "node:assert/strict";
import { type StateView, slidingWindowLog } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { policies } from "./algorithms.js";
import { type Outcome, play, playAll, scriptsOf } from "./scripts.js";
import { type Suite, startMs, type World } from "./world.js";

/** `keyState` shows the state, the block and the ban of a key. `agreesWithModel` checks each state after any history. */
export function inspectingCases(suite: Suite): void {
  suite.it("changes nothing: without it every request, refund and settlement is decided the same", async (world) => {
    const everything = { refunds: true, settles: true, jumps: true, impossible: true };
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, everything), policies, async ([policy, steps], other) => {
        const limiter = world.limiter(policy);
        const unused = createLimit(limiter.name, other);
        const [inspected, alone] = [world.fresh(), world.fresh()];
        const outcomes: Outcome[] = [];
        for (const step of steps) {
          world.nowMs = step.atMs;
          const inspections = [limiter.keyState(inspected), limiter.keyState(inspected), limiter.keyState("never used")];
          const [one, other] = await Promise.all([...inspections, world.store.keyState(unused, inspected)]);
          assert.deepEqual(one, other);
          outcomes.push(await play(world, limiter, inspected, step, outcomes));
        }
        assert.deepEqual(await playAll(world, limiter, alone, steps), outcomes);
      }),
      world.runs(60),
    );
  });

  suite.it("explains what remains, and is empty exactly if the key is as if never used", async (world) => {
    await fc.assert(
      fc.asyncProperty(scriptsOf(policies, { settles: true, backwards: true }), fc.nat(3), async ([policy, steps], quarters) => {
        const limiter = world.limiter(policy);
        const key = world.fresh();
        await playAll(world, limiter, key, steps);
        world.nowMs += Math.floor((quarters * policy.spanMs) / 4);
        const { state } = (await limiter.keyState(key)).states[0];
        const { remaining, resetAfterMs } = await limiter.peek(key);
        assert.equal(state.kind === "empty", resetAfterMs === 0);
        // A queue with `maxDelayMs` rejects before it is full.
        const isEarly = policy.algorithm === "leaky-bucket" && policy.maxDelayMs < policy.spanMs && remaining === 0;
        if (!isEarly) assert.equal(remaining, Math.max(leftOf(state, policy.quota), 0));
      }),
      world.runs(100),
    );
  });

  suite.it("shows the block and the ban in force, whatever began and ended before, and however the clock jumps", async (world) => {
    const byMs = fc.oneof(
      { weight: 4, arbitrary: fc.nat(1500) },
      { weight: 1, arbitrary: fc.integer({ min: -1500, max: 0 }) },
      { weight: 1, arbitrary: fc.constantFrom(-10_000, 10_000) },
    );
    const act = fc.constantFrom("block" as const, "ban", "block", "ban", "unblock", "reset", "consume");
    const acts = fc.array(fc.record({ act, byMs, forMs: fc.integer({ min: 1, max: 5000 }) }), { minLength: 1, maxLength: 15 });
    await fc.assert(
      fc.asyncProperty(acts, (acts) => showsBlocks(world, acts)),
      world.runs(60),
    );
  });

  suite.it("shows the newest thousand times of a long log, and all its units", async (world) => {
    for (const countRejected of [false, true]) {
      const limiter = world.limiter(slidingWindowLog({ limit: 2400, window: "1m", countRejected }));
      const key = world.fresh();
      for (let i = 0; i < 1200; i++) {
        world.nowMs = startMs + 10 * i;
        await limiter.consume(key, { cost: 2 });
      }
      const units = Array.from({ length: 1000 }, (_, i) => ({ atMs: startMs + 10 * (200 + i), units: 2 }));
      for (const [atMs, left] of [
        [startMs + 20_000, 0],
        [startMs + 60_000 + 505, 51],
      ] as const) {
        world.nowMs = atMs;
        const { decision, states } = await limiter.keyState(key);
        assert.deepEqual(decision, await limiter.peek(key));
        assert.deepEqual(states[0].state, { kind: "log", windowMs: 60_000, limit: 2400, units, total: 2 * (1200 - left) });
      }
    }
  });

  suite.it("shows each key on its own, also hostile ones", async (world) => {
    const limiter = world.limiter(slidingWindowLog({ limit: 20, window: "1m" }));
    const keys = ["", "k", "{k}", "k}", "k:blocks", limiter.name, "__proto__", "k ".repeat(50_000), "\ud800"];
    for (const [i, key] of keys.entries()) await limiter.consume(key, { cost: i + 1 });
    for (const [i, key] of keys.entries()) {
      const { state } = (await limiter.keyState(key)).states[0];
      assert.equal(state.kind === "log" && state.total, i + 1, JSON.stringify(key));
    }
  });
}

/** The units that a view leaves, as its docs say. */
function leftOf(state: StateView, quota: number): number {
  switch (state.kind) {
    case "empty":
      return quota;
    case "bucket":
      return Math.floor(state.level);
    case "windows":
      return (
        quota -
        state.windows.reduce((used, { startMs, endMs, count, weight }) => {
          // The weight is a fraction of the window, and the product is exact only in whole milliseconds.
          const widthMs = endMs - startMs;
          return used + Math.floor((count * Math.round(weight * widthMs)) / widthMs);
        }, 0)
      );
    case "log":
      return quota - state.total;
    case "queue":
      return quota - Math.ceil(state.length);
    case "held":
      return leftOf(state.used, quota) - state.total;
  }
}

interface Begun {
  readonly fromMs: number;
  readonly untilMs: number;
}

type BlockAct = { readonly act: "block" | "ban" | "unblock" | "reset" | "consume"; readonly byMs: number; readonly forMs: number };

async function showsBlocks(world: World, acts: readonly BlockAct[]): Promise<void> {
  const limiter = world.limiter(slidingWindowLog({ limit: 3, window: "1m" }));
  const key = world.fresh();
  let begun: { block?: Begun; ban?: Begun } = {};
  const inForce = (kind: "block" | "ban"): { untilMs: number } | undefined => {
    const one = begun[kind];
    // One that begins more than its own length ahead of the clock is void.
    if (one === undefined || one.untilMs <= world.nowMs || one.fromMs - world.nowMs > one.untilMs - one.fromMs) return undefined;
    return { untilMs: one.untilMs };
  };
  for (const [index, { act, byMs, forMs }] of acts.entries()) {
    const over = (["block", "ban"] as const).filter((kind) => inForce(kind) === undefined);
    world.nowMs += byMs;
    // A store may have forgotten one that was over, so it must not come back with the clock.
    if (over.some((kind) => inForce(kind) !== undefined)) {
      await limiter.unblock(key);
      begun = {};
    }
    if (act === "block" || act === "ban") {
      if (act === "block" || inForce("ban") === undefined) begun[act] = { fromMs: world.nowMs, untilMs: world.nowMs + forMs };
      await world.store.block(limiter.name, key, forMs, act);
    } else if (act === "consume") {
      await limiter.consume(key);
    } else {
      begun = act === "reset" && begun.block !== undefined ? { block: begun.block } : {};
      await limiter[act](key);
    }
    const { atMs, decision, block, ban } = await limiter.keyState(key);
    assert.deepEqual([atMs, block, ban], [world.nowMs, inForce("block"), inForce("ban")], `act ${index}: ${act}`);
    const lasting = block === undefined || (ban !== undefined && ban.untilMs > block.untilMs) ? ban : block;
    assert.deepEqual(decision.blocked, lasting && { kind: lasting === ban ? "ban" : "block", ...lasting }, `act ${index}: ${act}`);
    assert.deepEqual(decision, await limiter.peek(key));
    assert.deepEqual((await limiter.consume(key)).blocked, decision.blocked);
  }
}
