import * as assert from "node:assert/strict";
import type { Decision, Policy } from "@floodgate/core";
import { createLimit, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { type Kind, kinds } from "./algorithms.js";
import { checkNumbers } from "./large.js";
import { type Suite, startMs } from "./world.js";

const quota = fc.integer({ min: 1, max: 40 });
/** A plan: its quota, and for buckets its pace. */
export const plans: fc.Arbitrary<[number, number]> = fc.tuple(quota, fc.integer({ min: 1, max: 20 }));

/** A policy that shares its count with the other plans of the kind. */
export function planOf({ of, every }: Kind, [quota, pace]: readonly [number, number]): Policy {
  return of(quota, pace, every);
}

/** The policy of one name changes: another plan, or a reloaded rule. */
export function planCases(suite: Suite): void {
  for (const kind of kinds) {
    suite.it(`${kind.name}: new numbers keep the usage, clamped to the new limit`, async ({ store }) => {
      let used = 0;
      await fc.assert(
        fc.asyncProperty(plans, plans, quota, async (one, other, taken) => {
          const [before, after] = [createLimit("plans", planOf(kind, one)), createLimit("plans", planOf(kind, other))];
          const key = `key-${used++}`;
          const cost = Math.min(taken, one[0]);
          assert.equal((await store.consume(before, key, cost)).allowed, true);
          const look = await store.peek(after, key);
          checkNumbers(look);
          assert.equal(look.limit, other[0]);
          assert.equal(look.remaining, kind.left(other[0], cost, one[0]));
          assert.equal((await store.consume(after, key, look.remaining + 1)).allowed, false);
          if (look.remaining > 0) assert.equal((await store.consume(after, key, look.remaining)).allowed, true);
        }),
        { numRuns: 60 },
      );
    });

    suite.it(`${kind.name}: new times start a fresh count and leave the old one unchanged`, async ({ store }) => {
      const [first, second] = [createLimit("times", planOf(kind, [5, 5])), createLimit("times", kind.other(5))];
      await store.consume(first, "key", 5);
      assert.equal((await store.peek(second, "key")).remaining, 5);
      await store.consume(second, "key", 3);
      await store.reset(second, "key");
      assert.equal((await store.peek(second, "key")).remaining, 5);
      assert.equal((await store.peek(first, "key")).remaining, 0);
    });
  }

  suite.it("numbers stay whole and waits correct however often plans change", async (world) => {
    const step = fc.record({ byMs: fc.oneof(fc.nat(300), fc.nat(3000)), plan: fc.nat(2), cost: fc.integer({ min: 1, max: 12 }) });
    const script = fc.record({
      kind: fc.constantFrom(...kinds),
      plans: fc.array(plans, { minLength: 3, maxLength: 3 }),
      steps: fc.array(step, { minLength: 1, maxLength: 10 }),
    });
    await fc.assert(
      fc.asyncProperty(script, async ({ kind, plans: numbers, steps }) => {
        const name = world.fresh("plans");
        const limits = numbers.map((plan) => createLimit(name, planOf(kind, plan)));
        const live = async (key: string, until: number): Promise<[Limit, Decision]> => {
          world.nowMs = startMs;
          let last: [Limit, Decision] | undefined;
          for (const { byMs, plan, cost } of steps.slice(0, until)) {
            world.nowMs += byMs;
            const limit = limits[plan] as Limit;
            last = [limit, await world.store.consume(limit, key, cost)];
          }
          return last as [Limit, Decision];
        };
        for (let until = 1; until <= steps.length; until++) {
          const key = world.fresh();
          const [limit, decision] = await live(key, until);
          checkNumbers(decision);
          if (decision.cost > decision.limit) continue;
          const nowMs = world.nowMs;
          world.nowMs = nowMs + decision.retryAfterMs;
          assert.equal((await world.store.consume(limit, key, decision.cost)).allowed, true, `after ${decision.retryAfterMs} ms`);
          if (decision.retryAfterMs === 0) continue;
          const early = world.fresh();
          await live(early, until);
          world.nowMs = nowMs + decision.retryAfterMs - 1;
          assert.equal((await world.store.consume(limit, early, decision.cost)).allowed, false, `one before ${decision.retryAfterMs} ms`);
        }
      }),
      world.runs(150),
    );
  });
}
