import { accountCases } from "./accounts.js";
import { boundedCases, type MakeBoundedStore } from "./bounded.js";
import { boundCases } from "./bounds.js";
import { chargeCases } from "./charges.js";
import { clockCases } from "./clocks.js";
import { decisionCases } from "./decisions.js";
import { keyCases } from "./keys.js";
import { largeCases } from "./large.js";
import { planTurnCases } from "./plan-turns.js";
import { planCases } from "./plans.js";
import { refundCases } from "./refunds.js";
import { settlingCases } from "./settling.js";
import { severalCases } from "./several.js";
import { vectorCases } from "./vectors.js";
import { inWorld, type MakeStore, type Runner, type Suite } from "./world.js";

/** A store that is judged. */
export interface StoreConformanceOptions {
  /** Stands in the names of the cases. */
  readonly name: string;
  /**
   * Makes an empty store, or a promise of one, that tells the time by the clock that it is given (whole milliseconds); called
   * once a case. It must decide every request itself: caches of rejections off. Closed after the case if it has a `close`.
   */
  readonly makeStore: MakeStore;
  /** Makes an empty store that remembers at most `maxKeys` keys. Give it if your store has a bound, to have it judged when it is full. */
  readonly makeBoundedStore?: MakeBoundedStore;
}

/** For stores that need a round trip. */
const timeoutMs = 120_000;

/**
 * Judges a store by the contract: worked examples, properties over random policies and arrivals, hostile keys and clocks.
 * The runner is that of Vitest, Jest or `node:test`; the time is the suite's own, so nothing waits.
 *
 *     storeConformance({ describe, it }, { name: "memory store", makeStore: (clock) => memoryStore({ clock }) });
 */
export function storeConformance(runner: Runner, options: StoreConformanceOptions): void {
  const suite: Suite = {
    describe: (name, body) => void runner.describe(name, body),
    it: (name, body) => void runner.it(name, () => inWorld(options.makeStore, body), timeoutMs),
  };
  runner.describe(options.name, () => {
    vectorCases(suite);
    boundCases(suite);
    decisionCases(suite);
    largeCases(suite);
    refundCases(suite);
    settlingCases(suite);
    severalCases(suite);
    chargeCases(suite);
    accountCases(suite);
    clockCases(suite);
    planCases(suite);
    planTurnCases(suite);
    keyCases(suite);
    if (options.makeBoundedStore !== undefined) boundedCases(suite, options.makeBoundedStore);
  });
}
