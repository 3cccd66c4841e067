import { consumeAll, createLimiter, type Decision, type Key, type Limiter, type PolicyOptions, type Store } from "@floodgate/core";
import fc from "fast-check";
import { hostileCost, hostileKey, policyOptions } from "./hostile.js";
import { checkDecision, unlessRefused } from "./verdict.js";

/** One call of a limiter, some time after the previous one. */
interface Step {
  readonly act: "consume" | "consumeAll" | "peek" | "refund" | "settle" | "reset";
  readonly key: Key;
  readonly cost: number;
  readonly laterMs: number;
}

const step = fc.record({
  act: fc.constantFrom("consume", "consume", "consume", "consumeAll", "peek", "refund", "settle", "reset"),
  key: hostileKey,
  cost: hostileCost,
  laterMs: fc.oneof(
    fc.integer({ min: 0, max: 20 }),
    fc.integer({ min: -1000, max: 100_000 }),
    fc.integer({ min: -(2 ** 45), max: 2 ** 45 }),
  ),
}) as fc.Arbitrary<Step>;

const run = fc.array(step, { maxLength: 100, size: "max" });
/** Runs between two checks of the progress. */
const runsAtOnce = 100;
/** Steps in flight at once. */
const atOnce = 5;

/**
 * Makes at least `count` hostile decisions. Each run has its own policies, its own store and a clock that jumps.
 * @throws Error with the smallest failing run.
 */
export async function fuzzDecisions<S extends Store>(
  decisions: number,
  makeStore: (clock: () => number) => S,
  check: (store: S) => void | Promise<void>,
): Promise<void> {
  let left = decisions;
  const property = fc.asyncProperty(policyOptions, policyOptions, run, async (one, other, steps) => {
    let nowMs = Date.UTC(2026, 0);
    const store = makeStore(() => nowMs);
    const limiters = [limiterOf(store, "one", one), limiterOf(store, "other", other)].filter((limiter) => limiter !== undefined);
    if (limiters.length === 0) return;
    const take = userOf(limiters);
    for (let i = 0; i < steps.length; i += atOnce) {
      nowMs += (steps[i] as Step).laterMs;
      const taken = steps.slice(i, i + atOnce).map(take);
      await Promise.all(
        taken.map((done) => done.catch((error) => unlessRefused(error, "FLOODGATE_INVALID_KEY", "FLOODGATE_INVALID_COST"))),
      );
    }
    await check(store);
    left -= steps.length;
  });
  while (left > 0) await fc.assert(property, { numRuns: runsAtOnce });
}

/** Undefined if the policy's numbers are too large. */
function limiterOf(store: Store, name: string, policy: PolicyOptions): Limiter | undefined {
  try {
    return createLimiter({ name, policy, store, timeoutMs: 60_000 });
  } catch (error) {
    unlessRefused(error, "FLOODGATE_POLICY_TOO_LARGE");
    return undefined;
  }
}

/** Makes a function that takes a step, and checks what comes of it. */
function userOf(limiters: readonly Limiter[]): (step: Step) => Promise<void> {
  const first = limiters[0] as Limiter;
  let last: { readonly key: Key; readonly decision: Decision } | undefined;
  return async ({ act, key, cost }) => {
    switch (act) {
      case "consume": {
        const decision = await first.consume(key, { cost });
        checkDecision(decision);
        last = { key, decision };
        return;
      }
      case "consumeAll": {
        const { all } = await consumeAll(limiters.map((limiter) => ({ limiter, key, cost })));
        for (const decision of all) checkDecision(decision);
        return;
      }
      case "peek":
        checkDecision(await first.peek(key));
        return;
      case "refund": {
        if (last === undefined) return;
        const { decision } = last;
        const units = await first.refund(last.key, decision);
        if (!(units >= 0 && units <= decision.cost)) throw new Error(`${units} given back of ${decision.cost}`);
        return;
      }
      case "settle": {
        if (last === undefined) return;
        const { decision } = last;
        const units = await first.settle(last.key, decision, cost);
        if (!(units >= -decision.cost && units <= Math.max(0, cost - decision.cost))) {
          throw new Error(`${units} charged for ${cost} where ${decision.cost} was reserved`);
        }
        return;
      }
      case "reset":
        await first.reset(key);
    }
  };
}
