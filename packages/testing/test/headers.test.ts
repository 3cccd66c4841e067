import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../../test/runs.js";
import {
  concurrency,
  consumeAll,
  createLimiter,
  fixedWindow,
  gcra,
  headersOf,
  leakyBucket,
  memoryStore,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from "../../express/src/index.js";
import { expectLimited, expectNotLimited, type TestedResponse, testClock } from "../src/index.js";

const limit = fc.integer({ min: 1, max: 3 });
const policy = fc.oneof(
  limit.map((limit) => fixedWindow({ limit, window: "1m" })),
  limit.map((limit) => slidingWindowLog({ limit, window: "1m" })),
  limit.map((limit) => slidingWindowCounter({ limit, window: "1h" })),
  limit.map((capacity) => tokenBucket({ capacity, refill: 1, every: "10s" })),
  limit.map((capacity) => leakyBucket({ capacity, leak: 1, every: "1s" })),
  limit.map((limit) => gcra({ limit, window: "1m" })),
  limit.map((limit) => concurrency({ limit, hold: "30s" })),
);
/** Names that a careless reader of the headers would take for something else. */
const name = fc.oneof(fc.constantFrom('";r=0;t=1', "\\", '"', ', "x";r=1', "a;r=2;t=3", "remaining=7"), fc.stringMatching(/^[ -~]{1,20}$/));
const limits = fc.uniqueArray(fc.record({ name, policy }), { selector: ({ name }) => name, minLength: 1, maxLength: 3 });
const steps = fc.array(fc.record({ seconds: fc.integer({ min: 1, max: 20 }), cost: fc.integer({ min: 1, max: 4 }) }), {
  minLength: 1,
  maxLength: 10,
});

it("the assertions read what the headers say of any limits, whatever their names", () => {
  fc.assert(
    fc.property(limits, steps, (limits, steps) => {
      const clock = testClock();
      const store = memoryStore({ clock, maxKeys: 100 });
      const limiters = limits.map((limit) => createLimiter({ ...limit, store }));
      for (const { seconds, cost } of steps) {
        clock.advance(1000 * seconds);
        const { allowed, all, decision } = consumeAll(limiters.map((limiter) => ({ limiter, key: "k", cost })));
        const headers = Object.fromEntries(Object.entries(headersOf(all)).map(([name, value]) => [name.toLowerCase(), value]));
        const response = { status: allowed ? 200 : 429, headers, text: "no" };
        if (allowed) expectNotLimited(response, { remaining: Math.min(...all.map(({ remaining }) => remaining)) });
        else {
          // Limits with none left have rejected the request. Others may have, if it costs more than a unit.
          const isEmpty = all.some(({ remaining }) => remaining === 0);
          if (cost === 1 || !isEmpty) expectLimited(response, { by: decision.name });
          if (cost > 1) continue;
          const waits = all.map((one) => headersOf(one)["Retry-After"]);
          const by = all.filter((one, i) => !one.allowed && waits[i] === headersOf(all)["Retry-After"]).map(({ name }) => name);
          expect(all.map(({ name }) => name).filter((name) => isLimitedBy(response, name))).toEqual(by);
        }
      }
    }),
    runs(500),
  );
});

function isLimitedBy(response: TestedResponse, by: string): boolean {
  try {
    expectLimited(response, { by });
    return true;
  } catch {
    return false;
  }
}

it("a limit of slots has not rejected what another limit with the same wait rejected", () => {
  const store = memoryStore({ clock: testClock() });
  const slots = createLimiter({ name: "slots", policy: concurrency({ limit: 5, hold: "30s" }), store });
  const second = createLimiter({ name: "second", policy: fixedWindow({ limit: 1, window: "1s" }), store });
  second.consume("k");
  const { all } = consumeAll([slots, second].map((limiter) => ({ limiter, key: "k" })));
  const response = { status: 429, headers: new Headers(headersOf(all)) };
  expectLimited(response, { by: "second" });
  expect(isLimitedBy(response, "slots")).toBe(false);
});
