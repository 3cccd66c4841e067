import * as assert from "node:assert/strict";
import { concurrency, type Decision } from "@floodgate/core";
import { renewSlots } from "@floodgate/core/adapter";
import { asCharge, createLimit, type Limit, renewingStore } from "@floodgate/core/store";
import * as fc from "fast-check";
import { accountSecret } from "./accounts.js";
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

  suite.it("a receipt always finds its own slot, however often it is renewed or given back", async (world) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 5 }), acts, (limit, life) => keepsReceipts(world, limit, life)),
      world.runs(200),
    );
  });

  suite.it("a slot that is renewed by its receipt outlasts the hour of other receipts", async (world) => {
    const limiter = world.limiter(concurrency({ limit: 1, hold: "10m" }), undefined, accountSecret);
    const [first, ...others] = [await limiter.consume("key"), await limiter.consume("key")].map((slot) => limiter.receipt(slot));
    assert.equal(await renewSlots(limiter, "key", others[0] as string), true);
    for (let i = 0; i < 10; i++) {
      world.nowMs += 540_000;
      assert.equal(await renewSlots(limiter, "key", first as string), true);
      assert.equal((await limiter.consume("key")).allowed, false);
    }
    assert.equal(await limiter.refund("key", first as string), 1);
    assert.equal(await renewSlots(limiter, "key", first as string), false);
    assert.equal((await limiter.consume("key")).allowed, true);
    assert.equal(await limiter.refund("key", first as string), 0);
  });

  suite.it("a receipt takes slots again that have come back, until it expires", async (world) => {
    const limiter = world.limiter(concurrency({ limit: 1, hold: "10m" }), undefined, accountSecret);
    const [renewed, never] = [await limiter.consume("a"), await limiter.consume("b")].map((slot) => limiter.receipt(slot)) as [
      string,
      string,
    ];
    for (let i = 0; i < 5; i++) {
      world.nowMs += 660_000;
      assert.equal(await renewSlots(limiter, "a", renewed), true);
    }
    assert.equal(await renewSlots(limiter, "b", never), true);
    world.nowMs += 600_000;
    for (const [key, receipt] of [
      ["a", renewed],
      ["b", never],
    ] as const) {
      assert.equal(await renewSlots(limiter, key, receipt), false);
      assert.equal((await limiter.consume(key)).allowed, true);
      assert.equal(await limiter.refund(key, receipt), 0);
    }
  });

  suite.it("an expired receipt takes no slots again after a reset", async (world) => {
    const limiter = world.limiter(concurrency({ limit: 1, hold: "10m" }), undefined, accountSecret);
    const receipt = limiter.receipt(await limiter.consume("key")) as string;
    world.nowMs += 3_590_000;
    assert.equal(await renewSlots(limiter, "key", receipt), true);
    world.nowMs += 20_000;
    assert.equal(await renewSlots(limiter, "key", receipt), true);
    await limiter.reset("key");
    assert.equal(await renewSlots(limiter, "key", receipt), false);
    assert.equal((await limiter.consume("key")).allowed, true);
  });

  for (const [limit, workers] of [
    [1, 2],
    [2, 3],
  ] as const) {
    suite.it(`${workers} processes with a limit of ${limit} never have more slots in flight, in any order of any acts`, async (world) => {
      await exploreAll(world, limit, workers);
    });
  }

  suite.it("a renewed slot lasts, and one that nobody renews comes back after its hold", async (world) => {
    const [store, limit] = [world.store, createLimit(world.fresh("limit"), concurrency({ limit: 1, hold: "30s" }))];
    let slot = await store.consume(limit, "key", 1);
    for (let i = 0; i < 10; i++) {
      world.nowMs += 20_000;
      assert.equal((await store.consume(limit, "key", 1)).allowed, false);
      slot = await renewed(world, limit, "key", slot);
      assert.equal(slot.allowed, true);
    }
    world.nowMs += holdMs - 1;
    assert.equal((await store.peek(limit, "key")).retryAfterMs, 1);
    world.nowMs += 1;
    assert.equal((await store.consume(limit, "key", 1)).allowed, true);
    assert.equal((await renewed(world, limit, "key", slot)).allowed, false);
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
      assert.equal((await renewed(world, after, "key", slot)).allowed, true);
    }
    assert.equal((await world.store.peek(before, "key")).used, 5);
    assert.equal((await world.store.consume(after, "key", 1)).allowed, false);
  });
}

/** Renews a slot without a receipt. */
async function renewed({ store }: World, limit: Limit, key: string, slot: Decision): Promise<Decision> {
  return (await renewingStore(store).renew(limit, key, asCharge(slot))) as Decision;
}

interface InFlight {
  charge: Decision;
  untilMs: number;
}

async function keepsTheLimit(world: World, most: number, life: readonly Act[]): Promise<void> {
  const limit = createLimit("slots", concurrency({ limit: most, hold: "30s" }));
  const { store } = world;
  const key = world.fresh();
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
      const charge = await renewed(world, limit, key, chosen.charge);
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

/** A slot as its receipt knows it. It was given back if it ends at -Infinity. */
interface Received {
  readonly receipt: string;
  readonly cost: number;
  untilMs: number;
}

/** Each act is done twice, as by a client that got no answer. */
async function keepsReceipts(world: World, most: number, life: readonly Act[]): Promise<void> {
  const limiter = world.limiter(concurrency({ limit: most, hold: "30s" }), undefined, accountSecret);
  const key = world.fresh();
  const all: Received[] = [];
  const counted = (): number => all.reduce((sum, { untilMs, cost }) => sum + (untilMs > world.nowMs ? cost : 0), 0);
  for (const [index, act] of life.entries()) {
    world.nowMs += act.byMs;
    const which = "renew" in act ? act.renew : "giveBack" in act ? act.giveBack : 0;
    const chosen = all[all.length - 1 - (which % Math.max(all.length, 1))];
    if ("take" in act || chosen === undefined) {
      const cost = "take" in act ? act.take : 1;
      const decision = await limiter.consume(key, { cost });
      assert.equal(decision.allowed, counted() + cost <= most, `act ${index}`);
      if (decision.allowed) all.push({ receipt: limiter.receipt(decision), cost, untilMs: world.nowMs + holdMs });
      continue;
    }
    const { receipt, cost } = chosen;
    for (let time = 0; time < 2; time++) {
      const isHeld: boolean = chosen.untilMs > world.nowMs;
      if ("renew" in act) {
        const renews: boolean = isHeld || (chosen.untilMs > 0 && counted() + cost <= most);
        assert.equal(await renewSlots(limiter, key, receipt), renews, `act ${index}`);
        if (renews) chosen.untilMs = world.nowMs + holdMs;
      } else {
        assert.equal(await limiter.refund(key, receipt), isHeld ? cost : 0, `act ${index}`);
        chosen.untilMs = Number.NEGATIVE_INFINITY;
      }
    }
    assert.equal((await limiter.peek(key)).remaining, most - counted(), `peek after act ${index}`);
  }
}

/** A process: without a slot, with a slot that was renewed so many thirds of the hold ago, or with one that has come back meanwhile. */
type Worker = "idle" | "late" | number;

/** Processes, and the ages of the slots whose processes died. */
interface State {
  readonly workers: readonly Worker[];
  readonly orphans: readonly number[];
}

/** `tick` lets a third of the hold pass. The others are acts of the process `who`. */
interface Step {
  readonly what: "take" | "renew" | "giveBack" | "crash" | "tick";
  readonly who: number;
}

/** What a step leads to, and whether a slot is granted; undefined if the process cannot do that. */
function after({ workers, orphans }: State, { what, who }: Step, limit: number): { state: State; granted?: boolean } | undefined {
  const worker = workers[who] as Worker;
  const withWorker = (now: Worker, lost: readonly number[] = []) => ({
    workers: workers.map((worker, i) => (i === who ? now : worker)),
    orphans: [...orphans, ...lost],
  });
  const inFlight = orphans.length + workers.filter((worker) => typeof worker === "number").length;
  if (what === "tick") {
    const aged = (worker: Worker): Worker => (typeof worker !== "number" ? worker : worker === 2 ? "late" : worker + 1);
    return { state: { workers: workers.map(aged), orphans: orphans.filter((age) => age < 2).map((age) => age + 1) } };
  }
  if ((what === "take") !== (worker === "idle")) return undefined;
  if (what === "crash") return { state: withWorker("idle", typeof worker === "number" ? [worker] : []) };
  if (what === "giveBack") return { state: withWorker("idle") };
  const granted = typeof worker === "number" || inFlight < limit;
  return { state: withWorker(granted ? 0 : "idle"), granted };
}

/** Takes each step from each state that can be reached, on the store, and compares what it answers. */
async function exploreAll(world: World, most: number, count: number): Promise<void> {
  const limit = createLimit(world.fresh("limit"), concurrency({ limit: most, hold: "30s" }));
  const start: State = { workers: Array(count).fill("idle"), orphans: [] };
  const textOf = ({ workers, orphans }: State): string => JSON.stringify([[...workers].sort(), [...orphans].sort()]);
  const seen = new Set([textOf(start)]);
  const steps: Step[] = [{ what: "tick", who: 0 }];
  for (let who = 0; who < count; who++) for (const what of ["take", "renew", "giveBack", "crash"] as const) steps.push({ what, who });
  const queue: { state: State; path: readonly Step[] }[] = [{ state: start, path: [] }];
  for (const { state, path } of queue) {
    for (const step of steps) {
      const next = after(state, step, most);
      if (next === undefined) continue;
      const taken = [...path, step];
      const { granted, remaining } = await replay(world, limit, taken);
      const inFlight = next.state.orphans.length + next.state.workers.filter((worker) => typeof worker === "number").length;
      assert.ok(inFlight <= most);
      assert.deepEqual([granted, remaining], [next.granted, most - inFlight], JSON.stringify(taken));
      if (seen.has(textOf(next.state))) continue;
      seen.add(textOf(next.state));
      queue.push({ state: next.state, path: taken });
    }
  }
}

/** Takes steps for a fresh key. Returns whether the last one got a slot, and how many are free then. */
async function replay(world: World, limit: Limit, path: readonly Step[]): Promise<{ granted: boolean | undefined; remaining: number }> {
  const { store } = world;
  const key = world.fresh();
  const slots = new Map<number, Decision>();
  let granted: boolean | undefined;
  for (const { what, who } of path) {
    const slot = slots.get(who);
    granted = undefined;
    if (what === "tick") world.nowMs += holdMs / 3;
    else if (what === "take" || what === "renew") {
      const decision = slot === undefined ? await store.consume(limit, key, 1) : await renewed(world, limit, key, slot);
      granted = decision.allowed;
      if (granted) slots.set(who, decision);
      else slots.delete(who);
    } else {
      if (what === "giveBack") await store.settle(limit, key, asCharge(slot as Decision), 0);
      slots.delete(who);
    }
  }
  return { granted, remaining: (await store.peek(limit, key)).remaining };
}
