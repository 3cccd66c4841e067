import * as assert from "node:assert/strict";
import { asCharge, type Check, type Clock, createLimit, type Decision, type Limit } from "@floodgate/core/store";
import * as fc from "fast-check";
import { variants } from "./algorithms.js";
import { type ClosableStore, inWorld, type Suite, type World } from "./world.js";

/** Makes an empty store that keeps at most `maxKeys` keys over all limits. */
export type MakeBoundedStore = (clock: Clock, maxKeys: number) => ClosableStore | Promise<ClosableStore>;

const quota = fc.integer({ min: 2, max: 300 });
const kind = fc.constantFrom(...variants);
const policies = fc.record({ kind, quota }).map(({ kind, quota }) => kind.of(quota, 1, "1h"));
/** Two policies that share a count. */
const twoPlans = fc
  .record({ kind, quotas: fc.tuple(quota, quota) })
  .map(({ kind, quotas }) => quotas.map((quota) => kind.of(quota, 1, "1h")));
/** A part of the quota. `costOf` turns it into a cost that leaves at least one unit. */
const share = fc.double({ min: 0, max: 1, noNaN: true });
const costOf = ({ policy }: Limit, part: number): number => 1 + Math.floor(part * (policy.quota - 2));

/** A request: a list of limit index, key index and cost, the cost as a share of the quota. */
const request = fc.array(fc.record({ of: fc.nat(3), key: fc.nat(5), part: fc.oneof(fc.constant(1), share) }), {
  minLength: 1,
  maxLength: 6,
});

/** Rules for stores with a bound on keys. The clock stands still, so nothing expires and every number is exact. */
export function boundedCases(suite: Suite, make: MakeBoundedStore): void {
  const withStore = (maxKeys: number, body: (world: World) => Promise<void>): Promise<void> =>
    inWorld((clock) => make(clock, maxKeys), body);

  suite.it("evicts no key before maxKeys is reached", (world) =>
    fc.assert(
      fc.asyncProperty(policies, fc.array(share, { minLength: 1, maxLength: 30 }), (policy, parts) =>
        withStore(parts.length, async ({ store }) => {
          const limit = createLimit("limit", policy);
          for (const [i, part] of parts.entries()) await store.consume(limit, `key ${i}`, costOf(limit, part));
          for (const [i, part] of parts.entries()) {
            assert.equal((await store.peek(limit, `key ${i}`)).remaining, policy.quota - costOf(limit, part));
          }
        }),
      ),
      world.runs(50),
    ),
  );

  suite.it("evicts no key that is over its limit while it can evict one that is not", (world) =>
    fc.assert(
      fc.asyncProperty(
        fc.tuple(policies, policies),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 10 }),
        fc.integer({ min: 1, max: 10 }),
        fc.array(share, { minLength: 20, maxLength: 60 }),
        (pair, owes, others, parts) =>
          withStore(owes.length + others, async ({ store }) => {
            const limits = pair.map((policy, i) => createLimit(`limit ${i}`, policy)) as [Limit, Limit];
            const [limit] = limits;
            for (const [i, inDebt] of owes.entries()) {
              const decision = await store.consume(limit, `blocked ${i}`, limit.policy.quota);
              if (inDebt) await store.settle(limit, `blocked ${i}`, asCharge(decision), 2 * limit.policy.quota);
            }
            for (const [i, part] of parts.entries()) {
              const fresh = limits[i % 2] as Limit;
              await store.consume(fresh, `fresh ${i}`, costOf(fresh, part));
            }
            for (const i of owes.keys()) assert.equal((await store.peek(limit, `blocked ${i}`)).allowed, false, `blocked ${i}`);
          }),
      ),
      world.runs(100),
    ),
  );

  suite.it("evicts the same keys, whatever is inspected meanwhile", (world) =>
    fc.assert(
      fc.asyncProperty(
        fc.array(twoPlans, { minLength: 4, maxLength: 4 }),
        fc.integer({ min: 1, max: 8 }),
        fc.array(request, { minLength: 5, maxLength: 20, size: "max" }),
        async (some, room, requests) => {
          const plans = some.map((two, i) => two.map((policy) => createLimit(`limit ${i}`, policy)));
          // The other plan of each is only inspected.
          const limits = plans.map(([used]) => used as Limit);
          const decided = (inspects: boolean): Promise<Decision[]> => {
            const decisions: Decision[] = [];
            return withStore(room, async ({ store }) => {
              for (const [i, checks] of requests.map((parts) => checksOf(limits, parts)).entries()) {
                if (inspects) for (const limit of plans.flat()) await store.keyState(limit, `key ${i % 6}`);
                for (const { limit, key, cost } of checks) decisions.push(await store.consume(limit, key, cost));
                if (i % 5 === 0) await store.block("limit 1", `key ${i % 6}`, 60_000, "ban");
              }
            }).then(() => decisions);
          };
          assert.deepEqual(await decided(true), await decided(false));
        },
      ),
      world.runs(50),
    ),
  );

  suite.it("charges all limits of a request or none, and evicts no key of the request at hand", (world) =>
    fc.assert(
      fc.asyncProperty(
        fc.array(policies, { minLength: 4, maxLength: 4 }),
        fc.integer({ min: 0, max: 4 }),
        fc.array(request, { minLength: 5, maxLength: 30, size: "max" }),
        (some, spare, requests) => {
          const limits = some.map((policy, i) => createLimit(`limit ${i}`, policy));
          const all = requests.map((parts) => checksOf(limits, parts));
          // Room for the largest request, or for a few keys more.
          return withStore(Math.max(...all.map((checks) => checks.length)) + spare, async ({ store }) => {
            for (const [i, checks] of all.entries()) {
              const before = await remainingOf(store, checks);
              const decisions = await store.consumeAll(checks);
              const allowed = checks.every(({ cost }, c) => cost <= (before[c] as number));
              assert.equal(
                decisions.every((decision) => decision.allowed),
                allowed,
                `request ${i}`,
              );
              const due = checks.map(({ cost }, c) => (before[c] as number) - (allowed ? cost : 0));
              assert.deepEqual(await remainingOf(store, checks), due, `request ${i}`);
            }
          });
        },
      ),
      world.runs(100),
    ),
  );
}

async function remainingOf(store: World["store"], checks: readonly Check[]): Promise<number[]> {
  const found: number[] = [];
  for (const { limit, key } of checks) found.push((await store.peek(limit, key)).remaining);
  return found;
}

/** One check for each pair of limit and key. */
function checksOf(limits: readonly Limit[], parts: readonly { of: number; key: number; part: number }[]): Check[] {
  const checks = new Map<string, Check>();
  for (const { of, key, part } of parts) {
    const limit = limits[of] as Limit;
    checks.set(`${of} ${key}`, { limit, key: `key ${key}`, cost: part === 1 ? limit.policy.quota : costOf(limit, part) });
  }
  return [...checks.values()];
}
