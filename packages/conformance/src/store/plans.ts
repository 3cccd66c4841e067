import * as assert from "node:assert/strict";
import type { Policy } from "@floodgate/core";
import { createLimit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { type Variant, variants } from "./algorithms.js";
import { checkNumbers } from "./large.js";
import type { Suite } from "./world.js";

const quota = fc.integer({ min: 1, max: 40 });
/** A plan: its quota, and for buckets its pace. */
export const plans: fc.Arbitrary<[number, number]> = fc.tuple(quota, fc.integer({ min: 1, max: 20 }));

/** A policy that shares its count with the other plans of the kind. */
export function planOf({ of, every }: Variant, [quota, pace]: readonly [number, number]): Policy {
  return of(quota, pace, every);
}

/** The policy of one name changes: another plan, or a reloaded rule. */
export function planCases(suite: Suite): void {
  for (const kind of variants) {
    suite.it(`${kind.name}: new numbers keep the usage, clamped to the new limit`, async (world) => {
      const { store } = world;
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
        world.runs(60),
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
}
