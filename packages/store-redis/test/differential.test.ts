import { consumeAll, createLimiter, type Decision, type Limiter, type Policy } from "@floodgate/core";
import { asCharge, type Charge, createLimit, type Limit } from "@floodgate/core/store";
import { memoryStore } from "@floodgate/store-memory";
import * as fc from "fast-check";
import type { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { runs } from "../../../test/runs.js";
import { redisStore } from "../src/index.js";
import { smallPlans } from "./plans.js";
import { policies, tenAnHour } from "./policies.js";
import { useRedis } from "./use-redis.js";

let redis: Redis;
useRedis((_server, client) => {
  redis = client;
});

/** One step, some time after the previous one. */
type Step = { readonly afterMs: number } & (
  | { readonly act: "consume" | "peek" | "reset"; readonly limit: number; readonly key: string; readonly cost: number }
  | { readonly act: "refund"; readonly which: number }
  | { readonly act: "settle"; readonly which: number; readonly cost: number }
  | { readonly act: "all"; readonly key: string; readonly costs: readonly number[] }
);

const key = fc.constantFrom("a", "b");
const cost = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 3 }) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 14 }) });
const realCost = fc.oneof({ weight: 8, arbitrary: fc.nat(20) }, { weight: 1, arbitrary: fc.nat(Number.MAX_SAFE_INTEGER) });
const afterMs = fc.oneof(
  { weight: 4, arbitrary: fc.nat(20) },
  { weight: 2, arbitrary: fc.nat(1000) },
  { weight: 1, arbitrary: fc.nat(200_000) },
  { weight: 1, arbitrary: fc.integer({ min: -1000, max: 0 }) },
);

/** Two limits and a series of steps. */
const lives = fc.tuple(
  fc.tuple(policies, policies),
  fc.array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          act: fc.constantFrom("consume" as const, "peek", "consume", "reset"),
          afterMs,
          limit: fc.nat(1),
          key,
          cost,
        }),
      },
      { weight: 1, arbitrary: fc.record({ act: fc.constant("refund" as const), afterMs, which: fc.nat(30) }) },
      { weight: 2, arbitrary: fc.record({ act: fc.constant("settle" as const), afterMs, which: fc.nat(8), cost: realCost }) },
      { weight: 3, arbitrary: fc.record({ act: fc.constant("all" as const), afterMs, key, costs: fc.tuple(cost, cost) }) },
    ) as fc.Arbitrary<Step>,
    { minLength: 1, maxLength: 30 },
  ),
);

let played = 0;

/** Plays the same steps on a memory store and on Redis, and compares every answer. */
async function compare(
  [twoPolicies, steps]: readonly [readonly Policy[], readonly Step[]],
  denyCache: boolean,
  same: (redis: unknown, memory: unknown) => void,
): Promise<void> {
  let nowMs = 1_789_948_800_000;
  const clock = (): number => nowMs;
  const stores = [redisStore(redis, { clock, denyCache, prefix: `run-${played++}` }), memoryStore({ clock })] as const;
  const limiters = stores.map((store) =>
    twoPolicies.map((policy, i) => createLimiter<"sync" | "async">({ name: `limit-${i}`, policy, store, timeoutMs: 60_000 })),
  );
  const charged: [number, string, Decision, Decision][] = [];
  for (const step of steps) {
    nowMs += step.afterMs;
    const [theirs, ours] = limiters as [Limiter[], Limiter[]];
    if (step.act === "all") {
      const whole = (two: Limiter[]) => consumeAll(two.map((limiter, i) => ({ limiter, key: step.key, cost: step.costs[i] as number })));
      const [there, here] = [await whole(theirs), await whole(ours)];
      same(there, here);
      if (there.allowed) for (const [i, decision] of there.all.entries()) charged.push([i, step.key, decision, here.all[i] as Decision]);
    } else if (step.act === "refund" || step.act === "settle") {
      const past = charged.at(-1 - step.which);
      if (past === undefined) continue;
      const [i, of, there, here] = past;
      const change = (limiter: Limiter | undefined, decision: Decision) =>
        step.act === "refund" ? limiter?.refund(of, decision) : limiter?.settle(of, decision, step.cost);
      same(await change(theirs[i], there), await change(ours[i], here));
    } else {
      const one = (limiter: Limiter | undefined) =>
        step.act === "consume" ? limiter?.consume(step.key, { cost: step.cost }) : limiter?.[step.act](step.key);
      const [there, here] = [await one(theirs[step.limit]), await one(ours[step.limit])];
      same(there, here);
      if (step.act === "consume" && (there as Decision).allowed) charged.push([step.limit, step.key, there as Decision, here as Decision]);
    }
  }
}

describe("the Redis store compared with the memory store", () => {
  test("every field of every decision, refund and settlement is equal", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(lives, (life) => compare(life, false, (there, here) => expect(there).toEqual(here))),
      runs(400),
    );
  });

  test("every settlement is equal, and so is what each plan has left after it", { timeout: 120_000 }, async () => {
    const plan = fc.nat(2);
    const acts = fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.record({ afterMs, plan, cost }) },
        { weight: 2, arbitrary: fc.record({ afterMs, plan, which: fc.nat(3), cost: fc.oneof(fc.constant(0), realCost) }) },
      ),
      { minLength: 2, maxLength: 25 },
    );
    await fc.assert(
      fc.asyncProperty(smallPlans, acts, async (plans, life) => {
        let nowMs = 1_789_948_800_000;
        const clock = (): number => nowMs;
        const [there, here] = [redisStore(redis, { clock, denyCache: false, prefix: `run-${played++}` }), memoryStore({ clock })];
        const limits = plans.map((policy) => createLimit("plans", policy));
        const charged: [here: Charge, there: Charge][] = [];
        for (const act of life) {
          nowMs += act.afterMs;
          const limit = limits[act.plan % limits.length] as Limit;
          if ("which" in act) {
            const [charge] = charged.splice(-1 - act.which, 1);
            if (charge === undefined) continue;
            const change = here.settle(limit, "key", charge[0], act.cost);
            expect(await there.settle(limit, "key", charge[1], act.cost, 60_000)).toBe(change);
          } else {
            const decision = here.consume(limit, "key", act.cost);
            const other = await there.consume(limit, "key", act.cost, 60_000);
            expect(other).toEqual(decision);
            if (decision.allowed) charged.push([asCharge(decision), asCharge(other)]);
          }
          const looks = limits.map((other) => there.peek(other, "key", 60_000));
          expect(await Promise.all(looks)).toEqual(limits.map((other) => here.peek(other, "key")));
        }
      }),
      runs(300),
    );
  });

  test.each(tenAnHour)("a settlement to any cost returns the same number: $stateKind", async (policy) => {
    const clock = (): number => 1_789_948_800_000;
    const limit = createLimit("large", policy);
    for (const realCost of [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 5, 2 ** 52 + 1]) {
      const [there, here] = [redisStore(redis, { clock, prefix: `run-${played++}` }), memoryStore({ clock })];
      const decision = await there.consume(limit, "key", 4, 60_000);
      const other = here.consume(limit, "key", 4);
      expect(other).toEqual(decision);
      const change = here.settle(limit, "key", asCharge(other), realCost);
      expect(await there.settle(limit, "key", asCharge(decision), realCost, 60_000)).toBe(change);
    }
  });

  test("with the deny cache, `allowed` is always equal", { timeout: 120_000 }, async () => {
    const verdict = (answer: unknown): unknown =>
      typeof answer === "object" && answer !== null && "allowed" in answer ? answer.allowed : answer;
    await fc.assert(
      fc.asyncProperty(lives, (life) => compare(life, true, (there, here) => expect(verdict(there)).toEqual(verdict(here)))),
      runs(400),
    );
  });
});
