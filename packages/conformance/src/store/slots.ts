import * as assert from "node:assert/strict";
import { concurrency, type Decision } from "@floodgate/core";
import { asCharge, createLimit, renewingStore } from "@floodgate/core/store";
import * as fc from "fast-check";
import type { Suite, World } from "./world.js";

const holdMs = 30_000;

type Act = { readonly byMs: number } & ({ readonly take: number } | { readonly renew: number } | { readonly giveBack: number });

const byMs = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(0, 1, 10_000) },
  { weight: 1, arbitrary: fc.constantFrom(holdMs - 1, holdMs, holdMs + 1) },
  { weight: 2, arbitrary: fc.nat(holdMs) },
);
const acts: fc.Arbitrary<Act[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ byMs, take: fc.integer({ min: 1, max: 3 }) }) },
    { weight: 3, arbitrary: fc.record({ byMs, renew: fc.nat(5) }) },
    { weight: 2, arbitrary: fc.record({ byMs, giveBack: fc.nat(5) }) },
  ),
  { minLength: 1, maxLength: 40, size: "max" },
);

/** `concurrency`: slots are renewed and given back, and come back by themselves. */
export function slotCases(suite: Suite): void {
  suite.it("never has more slots in flight than the limit, whoever takes, renews and gives back", async (world) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), acts, (limit, life) => keepsTheLimit(world, limit, life)),
      world.runs(200),
    );
  });

  suite.it("a renewed slot lasts, and one that nobody renews comes back after its hold", async (world) => {
    const [store, limit] = [renewingStore(world.store), createLimit(world.fresh("limit"), concurrency({ limit: 1, hold: "30s" }))];
    let slot = await store.consume(limit, "key", 1);
    for (let i = 0; i < 10; i++) {
      world.nowMs += 20_000;
      assert.equal((await store.consume(limit, "key", 1)).allowed, false);
      slot = await store.renew(limit, "key", asCharge(slot));
      assert.equal(slot.allowed, true);
    }
    world.nowMs += holdMs - 1;
    assert.equal((await store.peek(limit, "key")).retryAfterMs, 1);
    world.nowMs += 1;
    assert.equal((await store.consume(limit, "key", 1)).allowed, true);
    assert.equal((await store.renew(limit, "key", asCharge(slot))).allowed, false);
    assert.equal(await store.settle(limit, "key", asCharge(slot), 0), 0);
    assert.equal((await store.peek(limit, "key")).remaining, 0);
  });

  suite.it("slots in flight stay renewed when the limit is lowered", async (world) => {
    const name = world.fresh("limit");
    const [before, after] = [5, 2].map((limit) => createLimit(name, concurrency({ limit, hold: "30s" })));
    if (before === undefined || after === undefined) return;
    const slots: Decision[] = [];
    for (let i = 0; i < 5; i++) slots.push(await world.store.consume(before, "key", 1));
    world.nowMs += 10_000;
    for (const slot of slots) {
      assert.equal((await renewingStore(world.store).renew(after, "key", asCharge(slot))).allowed, true);
    }
    assert.equal((await world.store.peek(before, "key")).used, 5);
    assert.equal((await world.store.consume(after, "key", 1)).allowed, false);
  });
}

interface InFlight {
  charge: Decision;
  untilMs: number;
}

async function keepsTheLimit(world: World, most: number, life: readonly Act[]): Promise<void> {
  const limit = createLimit("slots", concurrency({ limit: most, hold: "30s" }));
  const [store, key] = [renewingStore(world.store), world.fresh()];
  const all: InFlight[] = [];
  const counted = (): number => all.reduce((sum, { untilMs, charge }) => sum + (untilMs > world.nowMs ? charge.cost : 0), 0);
  for (const [index, act] of life.entries()) {
    world.nowMs += act.byMs;
    const which = "renew" in act ? act.renew : "giveBack" in act ? act.giveBack : 0;
    const chosen = all[all.length - 1 - (which % Math.max(all.length, 1))];
    const before = counted();
    if ("take" in act || chosen === undefined) {
      const cost = "take" in act ? act.take : 1;
      const charge = await store.consume(limit, key, cost);
      assert.equal(charge.allowed, before + cost <= most, `act ${index}`);
      if (charge.allowed) all.push({ charge, untilMs: world.nowMs + holdMs });
    } else if ("renew" in act) {
      const isLate = chosen.untilMs <= world.nowMs;
      const charge = await store.renew(limit, key, asCharge(chosen.charge));
      assert.equal(charge.allowed, !isLate || before + chosen.charge.cost <= most, `act ${index}`);
      if (charge.allowed) Object.assign(chosen, { charge, untilMs: world.nowMs + holdMs });
    } else {
      const isLate = chosen.untilMs <= world.nowMs;
      assert.equal(0 - (await store.settle(limit, key, asCharge(chosen.charge), 0)), isLate ? 0 : chosen.charge.cost, `act ${index}`);
      all.splice(all.indexOf(chosen), 1);
    }
    const { remaining, resetAfterMs, retryAfterMs } = await store.peek(limit, key);
    const ends = all.flatMap(({ untilMs }) => (untilMs > world.nowMs ? [untilMs - world.nowMs] : []));
    assert.deepEqual(
      [remaining, resetAfterMs, retryAfterMs],
      [most - counted(), Math.max(0, ...ends), remaining > 0 ? 0 : Math.min(...ends)],
      `peek after act ${index}`,
    );
    assert.ok(counted() <= most);
  }
}
