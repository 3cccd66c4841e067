import { accountCases } from "./accounts.js";
import { blockCases } from "./blocks.js";
import { boundedCases, type MakeBoundedStore } from "./bounded.js";
import { boundCases } from "./bounds.js";
import { chargeCases } from "./charges.js";
import { clockCases } from "./clocks.js";
import { decisionCases } from "./decisions.js";
import { inspectingCases } from "./inspecting.js";
import { keyCases } from "./keys.js";
import { largeCases } from "./large.js";
import { planTurnCases } from "./plan-turns.js";
import { planCases } from "./plans.js";
import { refundCases } from "./refunds.js";
import { settlingCases } from "./settling.js";
import { severalCases } from "./several.js";
import { vectorCases } from "./vectors.js";
import { inWorld, type MakeStore, type Runner, type Suite } from "./world.js";

/** The store under test. */
export interface StoreConformanceOptions {
  /** Shown in the test titles. */
  readonly name: string;
  /**
   * Makes an empty store, or a promise of one, that reads the time from `clock` (whole milliseconds). Called once per test.
   * Turn off any cache of rejections: every request must reach the store. After the test, `close` is called if the store has it.
   */
  readonly makeStore: MakeStore;
  /** Makes an empty store that keeps at most `maxKeys` keys. Set it if your store evicts keys: the suite then also tests a full store. */
  readonly makeBoundedStore?: MakeBoundedStore;
  /** The part of the random runs to do, above 0, at most 1: less if other tests cover what differs. Default 1. */
  readonly effort?: number;
}

/** The timeout of one test. Generous, for stores that need a network round trip per decision. */
const timeoutMs = 120_000;

/**
 * Tests a store against the contract: worked examples, properties over random policies and arrivals, hostile keys and clocks.
 * `runner` is `{ describe, it }` of Vitest, Jest or `node:test`. The suite sets the clock itself, so no test waits.
 *
 *     storeConformance({ describe, it }, { name: "memory store", makeStore: (clock) => memoryStore({ clock }) });
 */
export function storeConformance(runner: Runner, options: StoreConformanceOptions): void {
  const suite: Suite = {
    describe: (name, body) => void runner.describe(name, body),
    it: (name, body) => void runner.it(name, () => inWorld(options.makeStore, body, options.effort), timeoutMs),
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
    blockCases(suite);
    inspectingCases(suite);
    if (options.makeBoundedStore !== undefined) boundedCases(suite, options.makeBoundedStore);
  });
}
