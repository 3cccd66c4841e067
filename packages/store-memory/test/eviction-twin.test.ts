import { asCharge, type Charge, createLimit, heldPolicy, type Limit, nothingReserved } from "@floodgate/core/store";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import { variants } from "../../conformance/src/store/algorithms.js";
import { type MemoryStore, memoryStore } from "../src/index.js";
import { startMs } from "./setting.js";

const quota = fc.integer({ min: 1, max: 30 });
const pace = fc.integer({ min: 1, max: 20 });

/** Up to three plans of a name, each with its own quota and pace: all ways to count, with held units or without. */
const rules = fc.array(
  fc.record({
    kind: fc.constantFrom(...variants),
    plans: fc.array(fc.tuple(quota, pace), { minLength: 1, maxLength: 3 }),
    holdMs: fc.option(fc.integer({ min: 1, max: 3000 })),
  }),
  { minLength: 1, maxLength: 4 },
);

function plansOf({ kind, plans, holdMs }: typeof rules extends fc.Arbitrary<(infer R)[]> ? R : never, i: number): Limit[] {
  return plans.map(([quota, pace]) => {
    const policy = kind.of(quota, pace, kind.every);
    const holds = holdMs !== null && policy.algorithm !== "leaky-bucket" && policy.algorithm !== "concurrency";
    return createLimit(`rule ${i}`, holds ? heldPolicy("test", policy, holdMs) : policy);
  });
}

const acts = fc.array(
  fc.record({
    byMs: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(0, 0, 1, 7) },
      { weight: 3, arbitrary: fc.nat(1500) },
      { weight: 1, arbitrary: fc.constantFrom(10_000, 100_000) },
    ),
    act: fc.constantFrom("consume", "consume", "consume", "spray", "all", "settle", "settle", "charge", "renew", "reset", "look", "names"),
    rule: fc.nat(3),
    plan: fc.nat(2),
    key: fc.constantFrom("a", "b", "c", "d", "e", "f"),
    cost: fc.oneof(fc.constant(1), quota),
    which: fc.nat(5),
    realCost: fc.oneof(fc.constant(0), fc.nat(60)),
  }),
  { minLength: 10, maxLength: 80, size: "max" },
);

/** A charge, as each of the two stores knows it. */
type Charged = { readonly limit: Limit; readonly key: string; by: Map<MemoryStore, Charge> };

// A clock does not do both: a state that has ended may be gone when the clock steps back before its end.
it.each([
  ["goes forward", 1],
  ["steps back", -1],
])("a full store whose clock %s answers as one that has room, in which each key is reset that it reports as evicted", (_, direction) => {
  fc.assert(
    fc.property(fc.integer({ min: 4, max: 12 }), rules, acts, (maxKeys, made, life) => {
      let nowMs = startMs;
      const evicted: string[] = [];
      let told = 0;
      const store = memoryStore({
        clock: () => nowMs,
        maxKeys,
        onEvent: (event) => event.type === "evicted" && evicted.push(`${event.name} ${event.key}`),
      });
      const twin = memoryStore({ clock: () => nowMs });
      const all = made.map(plansOf);
      const charged: Charged[] = [];
      const keys = new Set<string>();

      const both = <T>(act: (store: MemoryStore) => T): Map<MemoryStore, T> => {
        const answers = new Map([store, twin].map((one) => [one, act(one)]));
        expect(answers.get(store)).toEqual(answers.get(twin));
        for (const limit of all.flat()) for (const key of keys) if (evicted.includes(`${limit.name} ${key}`)) twin.reset(limit, key);
        // Each step reports its own.
        told += evicted.splice(0).length;
        expect(told).toBe(store.evictions);
        expect(store.size).toBeLessThanOrEqual(maxKeys);
        return answers;
      };
      const consume = (checks: readonly { limit: Limit; key: string; cost: number }[]): void => {
        for (const { key } of checks) keys.add(key);
        const [only] = checks as [(typeof checks)[0]];
        const answers = both((one) => (checks.length === 1 ? [one.consume(only.limit, only.key, only.cost)] : one.consumeAll(checks)));
        if (answers.get(store)?.every(({ allowed }) => allowed))
          checks.forEach(({ limit, key }, i) => {
            charged.push({ limit, key, by: new Map([...answers].map(([one, decisions]) => [one, asCharge(decisions[i] as never)])) });
          });
      };

      // Only the plans that the store knows keep a state that is ahead of the clock.
      const lookAtAll = (): void => {
        if (direction < 0) for (const limit of all.flat()) both((one) => one.peek(limit, ""));
      };
      lookAtAll();
      let hasForgotten = false;
      for (const { byMs, act, rule, plan, key, cost, which, realCost } of life) {
        nowMs += byMs * direction;
        const planOf = (plans: readonly Limit[]): Limit => plans[plan % plans.length] as Limit;
        const limit = planOf(all[rule % all.length] as Limit[]);
        const isSlot = (limit: Limit): boolean => limit.policy.algorithm === "concurrency";
        const chargeOf = (one: MemoryStore, { by }: Charged): Charge => by.get(one) as Charge;
        if (act === "consume") consume([{ limit, key, cost }]);
        else if (act === "spray") for (let i = 0; i < 5; i++) consume([{ limit, key: `sprayed ${keys.size}`, cost: 1 }]);
        else if (act === "all") consume(all.map((plans) => ({ limit: planOf(plans), key, cost: 1 + (cost % 3) })));
        else if (act === "charge" && !isSlot(limit)) {
          keys.add(key);
          both((one) => one.settle(limit, key, nothingReserved, cost));
        } else if (act === "settle") {
          const [of] = charged.splice(-1 - which, 1);
          if (of) both((one) => one.settle(of.limit, of.key, chargeOf(one, of), isSlot(of.limit) ? 0 : realCost));
        } else if (act === "renew") {
          const of = charged.filter((each) => isSlot(each.limit)).at(-1 - which);
          if (of === undefined) continue;
          const answers = both((one) => one.renew(of.limit, of.key, chargeOf(one, of)));
          if (answers.get(store)?.allowed) of.by = new Map([...answers].map(([one, decision]) => [one, asCharge(decision)]));
        } else if (act === "reset") both((one) => one.reset(limit, key));
        else if (act === "look") both((one) => one.keyState(limit, key));
        else if (act === "names" && !hasForgotten) {
          // So many names without keys that the store forgets those that it knew.
          for (let i = 0; i < 1100; i++) store.peek(createLimit(`gone ${i}`, limit.policy), key);
          lookAtAll();
          hasForgotten = true;
        }
      }
    }),
    { ...runs(300), endOnFailure: true },
  );
});
