import * as assert from "node:assert/strict";
import type { Decision, Policy, Store } from "@floodgate/core";
import { asCharge, type Charge, type Check, createLimit, type Limit } from "@floodgate/core/store";
import { memoryStore } from "@floodgate/store-memory";
import * as fc from "fast-check";
import { policies } from "../../conformance/src/store/algorithms.js";
import { type DatabaseDriver, databaseStore } from "../src/index.js";

const afterMs = fc.oneof(
  { weight: 4, arbitrary: fc.nat(20) },
  { weight: 2, arbitrary: fc.nat(1000) },
  { weight: 1, arbitrary: fc.nat(200_000) },
  { weight: 1, arbitrary: fc.integer({ min: -1000, max: 0 }) },
);
const cost = fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 1, max: 3 }) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 14 }) });
const acts = fc.array(
  fc.record({
    afterMs,
    /** Which of the processes asks. */
    process: fc.nat(2),
    limit: fc.nat(2),
    key: fc.constantFrom("a", "b", ""),
    cost,
    act: fc.constantFrom("consume", "consume", "consume", "all", "peek", "settle", "settle", "reset", "block", "ban", "unblock", "look"),
    which: fc.nat(6),
  }),
  { minLength: 1, maxLength: 40 },
);

type Act = (typeof acts extends fc.Arbitrary<(infer A)[]> ? A : never) & { readonly charge?: Charge | undefined };

/** Longer than the clock goes back in a life: a store may keep or forget a block that begins later than its own end. */
const blockMs = (cost: number): number => 60_000 + cost * 100;

/** Plays one act, and returns what the store answered. */
function play(store: Store, limits: readonly Limit[], { act, limit: i, key, cost, which, charge }: Act): unknown {
  const limit = limits[i] as Limit;
  const patienceMs = 60_000;
  const checks: Check[] = limits.map((each, at) => ({
    limit: each,
    key,
    cost: 1 + ((cost + at) % 3),
    shadow: at === which,
    dryRun: at === which - 3,
  }));
  if (act === "consume") return store.consume(limit, key, cost, patienceMs);
  if (act === "all") return store.consumeAll(checks, patienceMs);
  if (act === "peek") return store.peek(limit, key, patienceMs);
  if (act === "look") return store.keyState(limit, key, patienceMs);
  if (act === "reset") return store.reset(limit, key, patienceMs);
  if (act === "unblock") return store.unblock(limit.name, key, patienceMs);
  if (act === "settle") return charge && store.settle(limit, key, charge, (cost * which) % 17, patienceMs);
  return store.block(limit.name, key, blockMs(cost), act === "ban" ? "ban" : "block", patienceMs);
}

/**
 * Lets three processes use a database in turn, each with what it remembers. They must decide, settle, block and show everything as one memory
 * store does.
 */
export async function compareWithMemory(driver: () => DatabaseDriver, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(policies, policies, policies, acts, async (first, second, third, life) => {
      let nowMs = 1_789_948_800_000;
      const clock = (): number => nowMs;
      const database = driver();
      const prefix = `life-${Math.random()}`;
      const theirs = [0, 1, 2].map(() => databaseStore(database, { clock, denyCache: false, prefix }));
      const ours = memoryStore({ clock });
      // The second limit has the name of the first, as if a plan had another policy.
      const limits = ([first, second, third] as Policy[]).map((policy, i) => createLimit(i === 2 ? "other" : "limit", policy));
      // A store may forget a block that has ended, or keep it. So no clock steps back across its end.
      const blockEndsMs: number[] = [];
      const charged: { readonly act: Act; readonly there: Charge; readonly here: Charge }[] = [];
      for (const act of life) {
        nowMs = Math.max(nowMs + act.afterMs, ...blockEndsMs.filter((endMs) => endMs <= nowMs));
        if (act.act === "block" || act.act === "ban") blockEndsMs.push(nowMs + blockMs(act.cost));
        const [past] = act.act === "settle" ? charged.splice(-1 - act.which, 1) : [];
        const of = past === undefined ? act : { ...act, limit: past.act.limit, key: past.act.key };
        const there = await play(theirs[act.process] as Store, limits, { ...of, charge: past?.there });
        const here = play(ours, limits, { ...of, charge: past?.here });
        assert.deepEqual(there, here);
        if (act.act !== "consume" || !(there as Decision).allowed) continue;
        charged.push({ act, there: asCharge(there as Decision), here: asCharge(here as Decision) });
      }
    }),
    { numRuns },
  );
}
