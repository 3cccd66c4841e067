import * as assert from "node:assert/strict";
import { consumeAll, type Decision, fixedWindow, type Limiter, type Policy, slidingWindowLog, tokenBucket } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import { variants } from "./algorithms.js";
import { type Suite, startMs, type World } from "./world.js";

const hourMs = 3_600_000;
const policy = fixedWindow({ limit: 3, window: "1m" });

const everyPolicy: readonly (readonly [string, Policy])[] = [
  ...variants.map(({ name, of }) => [name, of(3, 3, "1m")] as const),
  ["sliding log that counts rejections", slidingWindowLog({ limit: 3, window: "1m", countRejected: true })],
];

/** What a blocked key is told. */
const turnedAway = (leftMs: number): Partial<Decision> => ({
  allowed: false,
  remaining: 0,
  retryAfterMs: leftMs,
  delayMs: 0,
  degraded: false,
});

async function assertDecision(answer: Decision | PromiseLike<Decision>, expected: Partial<Decision>): Promise<void> {
  const decision = await answer;
  for (const [field, value] of Object.entries(expected)) assert.equal(decision[field as keyof Decision], value, field);
}

/** A blocked or banned key is turned away until its time is over, whatever its limit says. */
export function blockCases(suite: Suite): void {
  const ban = (world: World, { name }: Limiter, key: string, forMs: number) => world.store.block(name, key, forMs, "ban");

  for (const [name, one] of everyPolicy) {
    suite.it(`turn a key away for their duration, and charge nothing: ${name}`, async (world) => {
      const limiter = world.limiter(one);
      await limiter.consume("k");
      const before = await limiter.peek("k");
      await limiter.block("k", "1h");
      await assertDecision(limiter.consume("k"), turnedAway(hourMs));
      await assertDecision(limiter.consume("k", { cost: 3 }), { ...turnedAway(hourMs), cost: 3 });
      await assertDecision(limiter.peek("k"), { ...turnedAway(hourMs), limit: 3, resetAfterMs: hourMs });
      await assertDecision(limiter.consume("other"), { allowed: true });
      await limiter.unblock("k");
      await assertDecision(limiter.peek("k"), { allowed: true, remaining: before.remaining, resetAfterMs: before.resetAfterMs });
    });
  }

  suite.it("end to the millisecond, and show the time left", async (world) => {
    const limiter = world.limiter(policy);
    await limiter.block("k", "1500ms");
    world.nowMs += 1;
    await assertDecision(limiter.peek("k"), turnedAway(1499));
    world.nowMs = startMs + 1499;
    await assertDecision(limiter.consume("k"), turnedAway(1));
    world.nowMs = startMs + 1500;
    await assertDecision(limiter.consume("k"), { allowed: true, remaining: 2 });
  });

  suite.it("last longer than the limit's own wait, or not as long: the longer one is shown", async (world) => {
    const limiter = world.limiter(policy);
    await limiter.consume("k", { cost: 3 });
    await limiter.block("k", "10s");
    await assertDecision(limiter.consume("k"), { ...turnedAway(60_000), resetAfterMs: 60_000 });
    await assertDecision(limiter.consume("k", { cost: 4 }), turnedAway(Number.POSITIVE_INFINITY));
    await limiter.block("k", "2m");
    await assertDecision(limiter.consume("k"), { ...turnedAway(120_000), resetAfterMs: 120_000 });
  });

  suite.it("survive a reset, and hold for all policies of a name, but for no other name or key", async (world) => {
    const limiter = world.limiter(policy);
    const other = world.limiter(policy);
    await limiter.consume("k");
    await limiter.block("k", "1h");
    await limiter.reset("k");
    await assertDecision(limiter.consume("k"), turnedAway(hourMs));
    await assertDecision(other.consume("k"), { allowed: true });
    const plan = { ...limiter.limit, policy: tokenBucket({ capacity: 9, refill: 1, every: "1s" }) };
    const { algorithm } = world.limiter(plan.policy).limit;
    await assertDecision(world.store.peek({ ...plan, algorithm }, "k"), { ...turnedAway(hourMs), limit: 9 });
    await limiter.unblock("k");
    await assertDecision(limiter.peek("k"), { allowed: true, remaining: 3 });
  });

  suite.it("replace each other, also by a shorter one", async (world) => {
    const limiter = world.limiter(policy);
    await limiter.block("k", "1h");
    world.nowMs += 1000;
    await limiter.block("k", "1m");
    await assertDecision(limiter.peek("k"), turnedAway(60_000));
    await limiter.unblock("never blocked");
    await limiter.unblock("k");
    await limiter.unblock("k");
    await assertDecision(limiter.peek("k"), { allowed: true });
  });

  suite.it("reject all of several limits, in any place, and nothing is charged", async (world) => {
    const limiters = [world.limiter(policy), world.limiter(slidingWindowLog({ limit: 3, window: "1m" })), world.limiter(policy)];
    for (const blocked of limiters) {
      await blocked.block("k", "1h");
      const { allowed, decision, all } = await consumeAll(limiters.map((limiter) => ({ limiter, key: "k" })));
      assert.deepEqual([allowed, decision.name, decision.retryAfterMs], [false, blocked.name, hourMs]);
      assert.deepEqual(
        all.map(({ allowed, remaining }) => [allowed, remaining]),
        limiters.map((limiter) => (limiter === blocked ? [false, 0] : [true, 3])),
      );
      await blocked.unblock("k");
    }
    for (const limiter of limiters) await assertDecision(limiter.peek("k"), { remaining: 3 });
  });

  suite.it("of a shadow limit reject nothing, and that limit is not charged", async (world) => {
    const limits = [world.limiter(policy), world.limiter(policy)] as const;
    for (const [shadow, other] of [limits, [limits[1], limits[0]]] as const) {
      await shadow.block("k", "1h");
      const checks = limits.map((limiter) => ({ limit: limiter.limit, key: "k", cost: 1, shadow: limiter === shadow }));
      const allowed = (await world.store.consumeAll(checks)).map((decision) => decision.allowed);
      assert.deepEqual(
        allowed,
        limits.map((limiter) => limiter === other),
      );
      await shadow.unblock("k");
    }
    for (const limiter of limits) await assertDecision(limiter.peek("k"), { remaining: 2 });
  });

  suite.it("leave charges alone: they are refunded and settled as before", async (world) => {
    const limiter = world.limiter(policy);
    const [one, two] = [await limiter.consume("k"), await limiter.consume("k")];
    await limiter.block("k", "1h");
    assert.equal(await limiter.refund("k", one), 1);
    await assertDecision(limiter.consume("k"), turnedAway(hourMs));
    assert.equal(await limiter.settle("k", two, 3), 2);
    await assertDecision(limiter.consume("k"), turnedAway(hourMs));
    await limiter.unblock("k");
    await assertDecision(limiter.peek("k"), { remaining: 0 });
  });

  suite.it("hold for hostile keys, each on its own", async (world) => {
    const limiter = world.limiter(policy);
    const keys = ["", "k", "{k}", "k}", "k:blocks", `${limiter.name}`, "__proto__", "k ".repeat(50_000), "\ud800"];
    for (const blocked of keys) {
      await limiter.block(blocked, "1h");
      for (const key of keys) assert.equal((await limiter.peek(key)).allowed, key !== blocked, JSON.stringify([blocked, key]));
      await limiter.unblock(blocked);
    }
  });

  suite.it("hold for their key only, among requests of the same moment", async (world) => {
    const limiter = world.limiter(policy);
    for (const change of ["block", "unblock"] as const) {
      const changed = Promise.resolve(change === "block" ? limiter.block("k", "1h") : limiter.unblock("k"));
      const others = await Promise.all(["a", "b"].map((key) => limiter.peek(key)));
      await changed;
      for (const { allowed } of others) assert.equal(allowed, true, change);
      assert.equal((await limiter.peek("k")).allowed, change === "unblock");
    }
  });

  suite.it("that begin more than their length ahead of the clock are void: the clock was wrong", async (world) => {
    const limiter = world.limiter(policy);
    world.nowMs = startMs + 2 * hourMs + 1;
    await limiter.block("k", "2h");
    world.nowMs = startMs + 1;
    await assertDecision(limiter.peek("k"), turnedAway(4 * hourMs));
    world.nowMs = startMs;
    await assertDecision(limiter.peek("k"), { allowed: true });
  });

  suite.it("bans turn a key away as blocks do, and stay as they are while they are in force", async (world) => {
    const limiter = world.limiter(policy);
    assert.deepEqual(await ban(world, limiter, "k", 60_000), { begun: true, leftMs: 60_000 });
    world.nowMs += 10_000;
    assert.deepEqual(await ban(world, limiter, "k", hourMs), { begun: false, leftMs: 50_000 });
    await assertDecision(limiter.consume("k"), turnedAway(50_000));
    world.nowMs += 50_000;
    await assertDecision(limiter.peek("k"), { allowed: true });
    assert.deepEqual(await ban(world, limiter, "k", hourMs), { begun: true, leftMs: hourMs });
  });

  suite.it("bans are lifted by a reset and by unblock, for all policies of a name", async (world) => {
    const limiter = world.limiter(policy);
    const plan = createLimit(limiter.name, tokenBucket({ capacity: 9, refill: 1, every: "1s" }));
    for (const lift of [() => limiter.reset("k"), () => limiter.unblock("k")]) {
      await ban(world, limiter, "k", hourMs);
      await assertDecision(limiter.peek("k"), turnedAway(hourMs));
      await assertDecision(world.store.consume(plan, "k", 1), { ...turnedAway(hourMs), limit: 9 });
      await lift();
      await assertDecision(limiter.peek("k"), { allowed: true });
      await assertDecision(world.store.consume(plan, "k", 1), { allowed: true });
    }
  });

  suite.it("bans stand beside blocks: a reset lifts only the ban", async (world) => {
    const limiter = world.limiter(policy);
    await limiter.block("k", "1m");
    assert.deepEqual(await ban(world, limiter, "k", hourMs), { begun: true, leftMs: hourMs });
    await assertDecision(limiter.peek("k"), turnedAway(hourMs));
    await limiter.block("k", "10m");
    await assertDecision(limiter.peek("k"), turnedAway(hourMs));
    await limiter.reset("k");
    await assertDecision(limiter.peek("k"), turnedAway(600_000));
    await limiter.reset("k");
    await assertDecision(limiter.peek("k"), turnedAway(600_000));
    await limiter.unblock("k");
    await assertDecision(limiter.peek("k"), { allowed: true });
  });
}
