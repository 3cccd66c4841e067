import * as assert from "node:assert/strict";
import {
  type CombinedDecision,
  consumeAll,
  type Decision,
  fixedWindow,
  type Limiter,
  type Policy,
  slidingWindowLog,
} from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { policies } from "./algorithms.js";
import { playAll, type Step, scripts } from "./scripts.js";
import { type Suite, startMs, type World } from "./world.js";

/** One limit of a request: its policy, its cost, and the history of its key. */
interface Part {
  readonly policy: Policy;
  readonly cost: number;
  readonly past: readonly Step[];
}

const parts: fc.Arbitrary<Part[]> = fc.array(
  policies.chain((policy) =>
    fc.record({
      policy: fc.constant(policy),
      cost: fc.oneof(
        { weight: 3, arbitrary: fc.integer({ min: 1, max: policy.quota }) },
        { weight: 1, arbitrary: fc.constant(policy.quota + 1) },
      ),
      past: scripts(policy, { longest: 6 }),
    }),
  ),
  { minLength: 1, maxLength: 4 },
);

const shuffled = parts.chain((list) =>
  fc.tuple(fc.constant(list), fc.shuffledSubarray([...list.keys()], { minLength: list.length, maxLength: list.length })),
);

/** `consumeAll`: charges all limits or none, in one atomic step. */
export function severalCases(suite: Suite): void {
  suite.it("charges all limits if all allow, else none", async (world) => {
    await fc.assert(
      fc.asyncProperty(parts, async (list) => {
        const limiters = list.map(({ policy }) => world.limiter(policy));
        const twins = list.map(({ policy }) => world.limiter(policy));
        await live(world, list, limiters, "key");
        await live(world, list, twins, "key");
        const before = await looks(limiters, "key");
        const whole = await together(list, limiters, [...list.keys()], "key");
        const after = await looks(limiters, "key");
        // Each limit's decision alone.
        const alone: Decision[] = [];
        for (const [i, { cost }] of list.entries()) alone.push(await (twins[i] as Limiter).consume("key", { cost }));
        const charged = await looks(twins, "key");
        assert.equal(
          whole.allowed,
          alone.every((decision) => decision.allowed),
        );
        for (const [i, { policy }] of list.entries()) {
          const decision = whole.all[i] as Decision;
          assert.equal(decision.allowed, alone[i]?.allowed);
          if (whole.allowed) assert.deepEqual(told(decision), told(alone[i] as Decision));
          const logged = policy.algorithm === "sliding-window-log" && policy.countRejected && !decision.allowed;
          const expected = whole.allowed || logged ? charged : before;
          assert.deepEqual(told(after[i] as Decision), told(expected[i] as Decision), `limit ${i}`);
          if (!whole.allowed && !logged) assert.equal(decision.delayMs, 0, "nobody waits for a turn in a rejected whole");
        }
      }),
      world.runs(150),
    );
  });

  suite.it("gives the same decision and charges in any order of limits", async (world) => {
    await fc.assert(
      fc.asyncProperty(shuffled, async ([list, order]) => {
        const limiters = list.map(({ policy }) => world.limiter(policy));
        await live(world, list, limiters, "straight");
        await live(world, list, limiters, "shuffled");
        const straight = await together(list, limiters, [...list.keys()], "straight");
        const other = await together(list, limiters, order, "shuffled");
        assert.equal(other.allowed, straight.allowed);
        if (!straight.allowed) assert.equal(other.decision.retryAfterMs, straight.decision.retryAfterMs);
        order.forEach((place, i) => {
          assert.deepEqual(other.all[i], straight.all[place]);
        });
        assert.deepEqual(await looks(limiters, "shuffled"), await looks(limiters, "straight"));
      }),
      world.runs(100),
    );
  });

  suite.it("counts different keys separately", async (world) => {
    const perIp = world.limiter(fixedWindow({ limit: 2, window: "1m" }));
    const perUser = world.limiter(fixedWindow({ limit: 3, window: "1m" }));
    const ask = async (ip: string, user: string) =>
      (
        await consumeAll([
          { limiter: perIp, key: ip },
          { limiter: perUser, key: user },
        ])
      ).allowed;
    assert.deepEqual([await ask("a", "x"), await ask("a", "y"), await ask("a", "z"), await ask("b", "x")], [true, true, false, true]);
    assert.equal((await perUser.peek("z")).remaining, 3);
    assert.equal((await perUser.peek("x")).remaining, 1);
  });

  suite.it("counts two keys of one limiter separately", async (world) => {
    const limiter = world.limiter(fixedWindow({ limit: 2, window: "1m" }));
    await limiter.consume("full", { cost: 2 });
    const whole = await consumeAll([
      { limiter, key: "empty" },
      { limiter, key: "full" },
    ]);
    assert.deepEqual([whole.allowed, whole.all.map((decision) => decision.allowed)], [false, [true, false]]);
    assert.equal((await limiter.peek("empty")).remaining, 2);
  });

  suite.it("counts a shadow limit but never rejects because of it", async (world) => {
    const policy = fixedWindow({ limit: 2, window: "1m" });
    const [enforced, inShadow] = [createLimit("enforced", policy), createLimit("shadow", policy)];
    const ask = async (enforcedCost: number, shadowCost: number) => {
      const decisions = await world.store.consumeAll([
        { limit: inShadow, key: "key", cost: shadowCost, shadow: true },
        { limit: enforced, key: "key", cost: enforcedCost },
      ]);
      const left = [(await world.store.peek(inShadow, "key")).remaining, (await world.store.peek(enforced, "key")).remaining];
      return [decisions.map((decision) => decision.allowed), left];
    };
    assert.deepEqual(await ask(1, 1), [
      [true, true],
      [1, 1],
    ]);
    assert.deepEqual(
      await ask(2, 1),
      [
        [true, false],
        [1, 1],
      ],
      "an enforced limit rejects: nothing is charged",
    );
    assert.deepEqual(
      await ask(1, 2),
      [
        [false, true],
        [1, 0],
      ],
      "only the shadow limit would reject: the others are charged",
    );
  });

  suite.it("requires a dry-run limit to allow, in any position, and never charges it", async (world) => {
    await fc.assert(
      fc.asyncProperty(parts, fc.nat(3), fc.boolean(), async (list, at, shadow) => {
        const limiters = list.map(({ policy }) => world.limiter(policy));
        const looked = world.limiter(slidingWindowLog({ limit: 1, window: "1m", countRejected: true }));
        await live(world, list, limiters, "key");
        const ask = async (): Promise<boolean> => {
          const checks = limiters.map(({ limit }, i) => ({ limit, key: "key", cost: (list[i] as Part).cost, dryRun: false }));
          checks.splice(at, 0, { limit: looked.limit, key: "key", cost: 1, dryRun: true });
          const before = await looks(limiters, "key");
          const decisions = await world.store.consumeAll(checks.map((check) => ({ ...check, shadow: shadow && check.dryRun })));
          const place = Math.min(at, limiters.length);
          assert.deepEqual(decisions[place], await world.store.peek(looked.limit, "key"), "the look");
          const passed = decisions.every(({ allowed }, i) => allowed || (shadow && i === place));
          const countsRejected = list.some(({ policy }) => policy.algorithm === "sliding-window-log" && policy.countRejected);
          if (!passed && !countsRejected) assert.deepEqual(await looks(limiters, "key"), before, "nothing is charged");
          return passed;
        };
        const free = await ask();
        assert.equal((await looked.peek("key")).allowed, true);
        await looked.consume("key");
        const passes = await ask();
        if (!shadow) assert.equal(passes, false);
        else assert.ok(free || !passes, "a shadow prevents nothing");
      }),
      world.runs(150),
    );
  });

  suite.it("with countRejected, a log records only the requests that it rejects itself", async (world) => {
    const log = world.limiter(slidingWindowLog({ limit: 1, window: "1m", countRejected: true }));
    const closed = world.limiter(fixedWindow({ limit: 1, window: "1m" }));
    await closed.consume("key");
    const ask = async () =>
      await consumeAll([
        { limiter: log, key: "key" },
        { limiter: closed, key: "key" },
      ]);
    assert.equal((await ask()).allowed, false);
    assert.equal((await log.peek("key")).remaining, 1, "the other limit rejected");
    await log.consume("key");
    world.nowMs = startMs + 30_000;
    assert.equal((await ask()).allowed, false);
    assert.equal((await log.peek("key")).retryAfterMs, 60_000, "the log rejected too");
  });
}

/** Plays each limit's history, then sets the clock after the last of them. */
async function live(world: World, list: readonly Part[], limiters: readonly Limiter[], key: string): Promise<void> {
  let lastMs = startMs;
  for (const [i, { past }] of list.entries()) {
    await playAll(world, limiters[i] as Limiter, key, past);
    lastMs = Math.max(lastMs, world.nowMs);
  }
  world.nowMs = lastMs;
}

async function together(
  list: readonly Part[],
  limiters: readonly Limiter[],
  order: readonly number[],
  key: string,
): Promise<CombinedDecision> {
  return await consumeAll(order.map((i) => ({ limiter: limiters[i] as Limiter, key, cost: (list[i] as Part).cost })));
}

async function looks(limiters: readonly Limiter[], key: string): Promise<Decision[]> {
  const seen: Decision[] = [];
  for (const limiter of limiters) seen.push(await limiter.peek(key));
  return seen;
}

/** A decision without the fields that name its limiter. */
function told({ name: _, ...rest }: Decision): Omit<Decision, "name"> {
  return rest;
}
