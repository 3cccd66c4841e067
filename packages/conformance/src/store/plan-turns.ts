import * as assert from "node:assert/strict";
import { createLimit, type Limit, type Policy, slidingWindowCounter, slidingWindowLog } from "@floodgate/core";
import * as fc from "fast-check";
import { type Family, families } from "./plans.js";
import { type Suite, startMs } from "./world.js";

type Planned = Pick<Family, "name" | "plan">;

/** Those that other cases cannot hold: they leave a trace of a rejected request, or are another way to count the same. */
const others: readonly Planned[] = [
  {
    name: "sliding log that counts rejected requests",
    plan: (limit) => slidingWindowLog({ limit, window: 1000, countRejected: true }),
  },
  { name: "two counters", plan: (limit) => slidingWindowCounter({ limit, window: 1000 }) },
];

/** A request of one of a key's plans, for a share of its quota; where it is refunded, at once. */
interface Turn {
  readonly byMs: number;
  readonly which: number;
  readonly share: number;
  readonly refunded: boolean;
}

const turn: fc.Arbitrary<Turn> = fc.record({
  byMs: fc.oneof(fc.constant(0), fc.nat(100), fc.nat(3000), fc.nat(100_000)),
  which: fc.nat(2),
  share: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
  refunded: fc.nat(4).map((n) => n === 0),
});
const pace = fc.integer({ min: 1, max: 20 });
/** The quotas of a small plan, a large one and any other, and what comes in or drains under each, in most cases the same. */
const severalPlans = fc
  .tuple(
    fc.tuple(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 100, max: 1000 }), fc.integer({ min: 1, max: 200 })),
    fc.oneof(
      { weight: 2, arbitrary: pace.map((same) => [same, same, same] as const) },
      { weight: 1, arbitrary: fc.tuple(pace, pace, pace) },
    ),
  )
  .map(([quotas, paces]) => quotas.map((quota, i): [number, number] => [quota, paces[i] as number]));

/** Requests of several plans on one key: what one takes it takes from all, and brings none of them anything. */
export function planTurnCases(suite: Suite): void {
  suite.describe("lets a plan in no more often for the requests of others on its key", () => {
    for (const { name, plan } of [...families, ...others]) {
      suite.it(`${name}: all that it lets in would be let in alone, at the fastest pace of those that ask`, async (world) => {
        await fc.assert(
          fc.asyncProperty(severalPlans, fc.array(turn, { minLength: 2, maxLength: 30, size: "max" }), async (numbers, turns) => {
            const fastest = Math.max(...numbers.map(([, pace]) => pace));
            const limits = numbers.map((of) => createLimit("plans", plan(...of)));
            const alone = numbers.map(([quota], i) => createLimit(`alone ${i}`, roomiest(plan, quota, fastest)));
            const key = world.fresh();
            world.nowMs = startMs;
            for (const [index, { byMs, which, share, refunded }] of turns.entries()) {
              world.nowMs += byMs;
              const limit = limits[which] as Limit;
              const cost = 1 + Math.floor(share * (limit.policy.quota - 1));
              const decision = await world.store.consume(limit, key, cost);
              if (!decision.allowed) continue;
              if (refunded) await world.store.settle(limit, key, decision, 0);
              else assert.equal((await world.store.consume(alone[which] as Limit, key, cost)).allowed, true, `turn ${index}`);
            }
          }),
          { numRuns: 150 },
        );
      });
    }
  });
}

/**
 * A plan by itself. What flows between two requests flows at the pace of the second, whichever its plan; and where others ask too, the
 * refills of an interval bucket come at other times, so that one more may have come.
 */
function roomiest(plan: Family["plan"], quota: number, pace: number): Policy {
  const policy = plan(quota, pace);
  return policy.algorithm === "token-bucket" && policy.style === "interval" ? plan(quota + pace, pace) : policy;
}
