import { asCharge, type Charge, createLimit, heldPolicy, type Limit, type Store } from "@floodgate/core/store";
import { memoryStore } from "@floodgate/store-memory";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../test/runs.js";
import { variants } from "../../conformance/src/store/algorithms.js";
import { databaseStore } from "../src/index.js";
import { MapDriver } from "./map-driver.js";

const patienceMs = 60_000;
const plans = fc
  .record({
    kind: fc.constantFrom(...variants),
    plans: fc.array(fc.tuple(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 3 }),
    holdMs: fc.option(fc.integer({ min: 1, max: 300_000 }), { freq: 2 }),
  })
  .map(({ kind, plans, holdMs }) =>
    plans.map(([quota, pace]) => {
      const policy = kind.of(quota, pace, "10m");
      const holds = holdMs !== null && policy.algorithm !== "leaky-bucket" && policy.algorithm !== "concurrency";
      return createLimit("limit", holds ? heldPolicy("test", policy, holdMs) : policy);
    }),
  );
const acts = fc.array(
  fc.record({
    afterMs: fc.oneof({ weight: 2, arbitrary: fc.nat(20) }, fc.nat(2_000_000), fc.nat(20_000_000)),
    act: fc.constantFrom("consume", "consume", "settle", "peek"),
    plan: fc.nat(2),
    cost: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 30 })),
    which: fc.nat(3),
    realCost: fc.oneof(fc.constant(0), fc.nat(90)),
  }),
  { minLength: 2, maxLength: 30 },
);

test("rows are swept only when they count under no plan", { timeout: 60_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(plans, acts, async (limits, life) => {
      let nowMs = 1_789_948_800_000;
      const clock = (): number => nowMs;
      const driver = new MapDriver();
      driver.nowMs = clock;
      const [database, memory] = [databaseStore(driver, { clock, denyCache: false }), memoryStore({ clock })];
      const charged: { limit: Limit; there: Charge; here: Charge }[] = [];
      for (const { afterMs, act, plan, cost, which, realCost } of life) {
        nowMs += afterMs;
        await driver.sweep(1);
        const limit = limits[plan % limits.length] as Limit;
        if (act === "peek") expect(await database.peek(limit, "key", patienceMs)).toEqual(memory.peek(limit, "key"));
        else if (act === "settle") {
          const [of] = charged.splice(-1 - which, 1);
          if (of === undefined) continue;
          const real = of.limit.policy.algorithm === "concurrency" ? 0 : realCost;
          const settle = (store: Store, charge: Charge) => store.settle(of.limit, "key", charge, real, patienceMs);
          expect(await settle(database, of.there)).toBe(settle(memory, of.here));
        } else {
          const there = await database.consume(limit, "key", cost, patienceMs);
          const here = memory.consume(limit, "key", cost);
          expect(there).toEqual(here);
          if (there.allowed) charged.push({ limit, there: asCharge(there), here: asCharge(here) });
        }
      }
    }),
    runs(2400),
  );
});
